package ipam_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Every allocation with an IP is yielded once, with all the others of its IP and network and with none but
// these, in the order in which they were given.
func TestAddressesYieldsEachAddressWhole(t *testing.T) {
	type allocation struct {
		address ipam.Address
		number  int
	}
	ips := []netip.Addr{{}, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::1")}
	rapid.Check(t, func(t *rapid.T) {
		all := make([]allocation, rapid.IntRange(0, 12).Draw(t, "allocations"))
		want := make(map[ipam.Address][]int)
		for i := range all {
			all[i] = allocation{ipam.Address{
				Network: rapid.SampledFrom([]string{"", "blue"}).Draw(t, "network"),
				IP:      rapid.SampledFrom(ips).Draw(t, "ip"),
			}, i}
			if all[i].address.IP.IsValid() {
				want[all[i].address] = append(want[all[i].address], i)
			}
		}
		got := make(map[ipam.Address][]int)
		for of := range ipam.Addresses(all, func(a allocation) ipam.Address { return a.address }) {
			if got[of[0].address] != nil {
				t.Errorf("%v is yielded twice", of[0].address)
			}
			for _, a := range of {
				got[of[0].address] = append(got[of[0].address], a.number)
			}
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("addresses (-want +got):\n%s", diff)
		}
	})
}
