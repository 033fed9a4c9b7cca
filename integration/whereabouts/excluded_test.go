package whereabouts_test

import (
	"fmt"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// attach creates a network attachment in the shop with these IPAM fields, in a list of plugins as
// for Multus.
func (f *fixture) attach(name, ipam string) {
	f.Helper()
	f.must(f.CreateNetwork(f.Context(), shop, name, fmt.Sprintf(`{"cniVersion":"1.0.0","name":%q,"plugins":[
		{"type":"macvlan","ipam":{"type":"whereabouts",%s}},{"type":"tuning"}]}`, name, ipam)))
}

// A cluster without Multus has no attachments, and no definition of them. It is enough that the API
// server says so.
func TestWithoutDefinitionOfAttachmentsTheCapacityIsKnown(t *testing.T) {
	f := newFixture(t)
	f.UndefineT(t, cluster.NetworkAttachments)
	f.writePool("10.0.0.0-24", "10.0.0.0/24", `{"1":{"id":"c","podref":"shop/web"}}`)
	f.writeReservation("10.0.0.1", "shop/web")
	if got := f.listed(); len(got) != 2 {
		t.Errorf("listed %+v, want an entry and a reservation", got)
	}
	if n := f.networkOf(); n.Capacity != "254" || n.Free != "253" {
		t.Errorf("the network is %+v, want 254 addresses, one of them used", n)
	}
}

// listed returns what both backends list.
func (f *fixture) listed() []ipam.Allocation {
	f.Helper()
	var all []ipam.Allocation
	for _, b := range f.recorders(f.Config) {
		for pool, err := range b.List(f.Context()) {
			f.must(err)
			all = append(all, pool.Allocations...)
		}
	}
	return all
}
