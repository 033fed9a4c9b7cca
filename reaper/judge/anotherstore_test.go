package judge_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// An outsideStore is outside the API server.
type outsideStore struct{ ipam.Backend }

func (outsideStore) Locate() ipam.Store { return ipam.Store{Outside: true, ID: "A"} }

// Promises 1, 2. While no pod shows what a store outside the API server has for it, the store may
// be that of another cluster, and all of it is held, also after the grace period. The other stores
// are not.
func TestStoreOfWhichNoPodShowsAnythingIsHeld(t *testing.T) {
	const few, enough = 19, 20
	unseen := decision{judge.Held, judge.StoreUnseen, "no pod shows its own address among the 20 of the store"}
	due := decision{judge.Orphaned, judge.PodAbsent, ""}
	for _, tt := range []struct {
		name    string
		outside bool
		n       int
		change  func(all []ipam.Allocation)
		showing func(all []ipam.Allocation) census.Pod
		want    decision
	}{
		{"none", true, enough, nil, nil, unseen},
		{"none of few", true, few, nil, nil, due},
		{"none of a store inside", false, enough, nil, nil, due},
		{"its own", true, enough, nil,
			func(all []ipam.Allocation) census.Pod { return showing(all[1].Owner.Pod, all[1].IP) }, due},
		{"that of another pod, in the range of both clusters", true, enough, nil,
			func(all []ipam.Allocation) census.Pod { return showing(other, all[1].IP) }, unseen},
		{"a pod of that name with another address", true, enough, nil,
			func(all []ipam.Allocation) census.Pod {
				return showing(all[1].Owner.Pod, netip.MustParseAddr("192.0.2.1"))
			}, unseen},
		{"that of no name", true, enough, func(all []ipam.Allocation) { all[1].Owner.Pod = ipam.PodRef{} },
			func(all []ipam.Allocation) census.Pod { return showing(other, all[1].IP) }, unseen},
		{"a sandbox of no name", true, enough, func(all []ipam.Allocation) { all[1].Owner.Pod = ipam.PodRef{} },
			func([]ipam.Allocation) census.Pod { return census.Pod{Ref: other, Sandbox: "s1"} }, due},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all := make([]ipam.Allocation, tt.n)
			for i := range all {
				all[i] = webAllocation()
				all[i].Key, all[i].IP = fmt.Sprint(i), netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
				all[i].Owner.Pod.Name, all[i].Owner.Sandbox, all[i].Adoption = fmt.Sprint("pod-", i), fmt.Sprint("s", i), ipam.NeverAdopted
			}
			if tt.change != nil {
				tt.change(all)
			}
			s := situation{
				pools: []ipam.Pool{poolOf(append(all, ipam.Allocation{Key: "handle", Token: "t", EmptyHandle: true, Adoption: ipam.NeverAdopted, Owner: ipam.Owner{Sandbox: "none"}})...)},
				pods:  []census.Pod{{Ref: web}},
			}
			if tt.showing != nil {
				s.pods = append(s.pods, tt.showing(all))
			}
			var b ipam.Backend = fixedStore(s.pools)
			if tt.outside {
				b = outsideStore{b}
			}
			p := policy.Default()
			releaseNow(&p)
			decisions := judge.Judge(noon, p, inventory(t, b), s.census(t), ledger.Ledger{})
			equal(t, "an address", decisionOf(decisions[0]), tt.want)
			equal(t, "the empty handle is held", decisions[tt.n].Reason == judge.StoreUnseen, tt.want == unseen)
		})
	}
}
