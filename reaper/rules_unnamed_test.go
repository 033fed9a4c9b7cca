package reaper_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// starting returns a pod that hangs on the node without an address.
func starting(node string) reaper.Pod {
	return reaper.Pod{Ref: other, Node: node, AddressUnknown: true, Starting: true}
}

// A dry pool is full of pods that hang. They cannot own an allocation that was there
// before their ADD. Pods that may have an address and do not show it still hold.
func TestPodsThatHangDoNotHoldAllocationsWithoutANameForEver(t *testing.T) {
	hidden := decision{reaper.Held, reaper.OwnerUnknown, "it names a sandbox only, and not every pod shows its addresses"}
	absent := func(v reaper.Verdict) decision { return decision{v, reaper.SandboxAbsent, ""} }
	for _, tt := range []struct {
		name          string
		pod           reaper.Pod
		grace, minAge time.Duration
		want          decision      // at first
		due           time.Duration // 0: never
	}{
		{"no pod hangs", showing(other, ip2), 0, 0, absent(reaper.Orphaned), 0},
		{"a pod hangs on a ready node", starting("n1"), 0, 0, absent(reaper.Suspected), 4 * time.Minute},
		{"a pod hangs, and minAge is longer", starting("n1"), 0, 6 * time.Minute, absent(reaper.Suspected), 6 * time.Minute},
		{"a pod hangs, and the grace period is longer", starting("n1"), time.Hour, 0, absent(reaper.Suspected), time.Hour},
		{"a pod hangs on a node that is not ready", starting("n2"), 0, 0, hidden, 0},
		{"a pod hangs on a node that is gone", starting("n3"), 0, 0, hidden, 0},
		{"a pod runs and does not show all that it should", reaper.Pod{Ref: other, Node: "n1", AddressUnknown: true}, 0, 0, hidden, 0},
		{"a pod shows an address, and leaves out a network", reaper.Pod{Ref: other, Node: "n1", Addresses: []netip.Addr{ip2}, InStatus: 1, LeavesOut: true}, 0, 0, hidden, 0},
		{"a pod has no address in its status, and leaves out a network", reaper.Pod{Ref: other, Node: "n1", LeavesOut: true}, 0, 0, hidden, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			a.Owner.Pod = reaper.PodRef{}
			s := situation{
				pools: []reaper.Pool{poolOf(a)}, pods: []reaper.Pod{tt.pod},
				nodes: []reaper.Node{ready("n1"), {Name: "n2", OutOfService: true}},
				policy: func(p *policy.Policy) {
					p.Pods.Unnamed = policy.Release
					p.GracePeriod, p.MinAge = &policy.Duration{Duration: tt.grace}, &policy.Duration{Duration: tt.minAge}
				},
			}
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), tt.want)
			if tt.due == 0 {
				return
			}
			s.ledger = s.seen(t, noon)
			equal(t, "verdict a second before", s.judge(t, noon.Add(tt.due-early(tt.grace)-time.Second))[0].Verdict, reaper.Suspected)
			equal(t, "verdict in time", s.judge(t, noon.Add(tt.due))[0].Verdict, reaper.Orphaned)
			s.pools[0].Allocations[0].Token = "t2"
			equal(t, "verdict on what changed meanwhile", s.judge(t, noon.Add(tt.due))[0].Verdict, reaper.Suspected)
		})
	}
}

// A name that was derived from a handle is treated likewise.
func TestPodsThatHangDoNotHoldAllocationsWithADerivedNameForEver(t *testing.T) {
	a := webAllocation()
	a.Inferred = true
	s := situation{
		pools: []reaper.Pool{poolOf(a)}, pods: []reaper.Pod{starting("n1")}, nodes: []reaper.Node{ready("n1")},
		policy: func(p *policy.Policy) {
			releaseNow(p)
			p.Pods.Unnamed = policy.Release
		},
	}
	s.ledger = s.seen(t, noon)
	equal(t, "verdict", decisionOf(s.judge(t, noon.Add(4*time.Minute-time.Second))[0]), decision{reaper.Suspected, reaper.PodAbsent, ""})
	equal(t, "verdict in time", decisionOf(s.judge(t, noon.Add(4*time.Minute))[0]), decision{reaper.Orphaned, reaper.PodAbsent, ""})
}

// Promise 1, 4. The second look lists the pods: one of them shows the address by now, or
// is on a node that hides it.
func TestPodThatHungAndHasTheAddressByNowKeepsIt(t *testing.T) {
	a := webAllocation()
	a.Owner.Pod = reaper.PodRef{}
	h := newHarness(fixedStore{poolOf(a)})
	h.policy.Pods.Unnamed = policy.Release
	h.pods.AddNodes(ready("n1"))
	h.pods.Add(starting("n1"))
	h.run(t)
	h.now = noon.Add(10 * time.Minute)
	lists := 0
	h.pods.OnCall(func(call string) error {
		if lists++; call == "list pods" && lists > 1 {
			h.pods.Add(showing(other, ip1))
		}
		return nil
	})
	equal(t, "outcome", outcomes(h.run(t))["1"], reaper.Returned)
}

// Promise 2. A field that the backend does not know may say that the address is in use.
func TestUnknownFieldHolds(t *testing.T) {
	a := webAllocation()
	a.UnknownField = "spec.allocations[1].claim"
	s := situation{pools: []reaper.Pool{poolOf(a)}, policy: releaseNow}
	equal(t, "verdict", decisionOf(s.judge(t, noon)[0]),
		decision{reaper.Held, reaper.UnknownField, "it has a field that this program does not know: spec.allocations[1].claim"})
	s.pods = []reaper.Pod{showing(web, ip1)}
	equal(t, "verdict on one in use", decisionOf(s.judge(t, noon)[0]), decision{reaper.InUse, reaper.PodPresent, ""})
}

// Promise 1. The guest of a virtual machine keeps its address in a live migration.
func TestAddressOfAGuestIsInUse(t *testing.T) {
	h := newHarness(fixedStore{poolOf(webAllocation())})
	h.pods.Add(reaper.Pod{Ref: other})
	h.pods.AddMachines(reaper.VirtualMachine{Namespace: "default", Name: "vm", Addresses: []netip.Addr{ip1}})
	equal(t, "verdict", reported(t, h.run(t), "1"), decision{reaper.InUse, reaper.AddressInUse, "reported by virtual machine default/vm"})
}
