package judge_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

// groupOfTwo returns two pools with one allocation each, of one group: that of web, and
// a second one that the argument may change.
func groupOfTwo(change func(*ipam.Allocation)) []ipam.Pool {
	first, second := webAllocation(), webAllocation()
	second.IP, second.Token = ip2, "t2"
	first.Group, second.Group = "b", "b"
	if change != nil {
		change(&second)
	}
	here, there := poolOf(first), poolOf(second)
	there.Name = "there"
	return []ipam.Pool{here, there}
}

// siblingKept returns the decision on an allocation whose sibling 10.0.0.2 is kept.
func siblingKept(reason string) decision {
	return decision{judge.Held, judge.SiblingKept, "its sibling 10.0.0.2 is kept: " + reason}
}

// Promise 1, 2. Without its sibling, web's allocation would be ownerless.
func TestAllocationIsKeptWithItsSibling(t *testing.T) {
	absent := decision{judge.Suspected, judge.PodAbsent, ""}
	for _, tt := range []struct {
		name   string
		second func(*ipam.Allocation)
		pods   []census.Pod
		nodes  []census.Node
		want   decision // of the first
		other  decision // of the second
	}{
		{name: "both are ownerless", want: absent, other: absent},
		{name: "a pod shows the other", pods: []census.Pod{showing(other, ip2)},
			want: siblingKept("AddressInUse"), other: decision{judge.InUse, judge.AddressInUse, "shown by pod default/other"}},
		{name: "the other is another pod's, which exists", second: func(a *ipam.Allocation) { a.Owner.Pod = other },
			pods: []census.Pod{{Ref: other}}, want: siblingKept("PodPresent"), other: decision{judge.InUse, judge.PodPresent, ""}},
		{name: "the other cannot be understood", second: func(a *ipam.Allocation) { a.Unreadable = "no JSON" },
			want: siblingKept("Unreadable"), other: decision{judge.Held, judge.Unreadable, "no JSON"}},
		{name: "the other's node is not ready", second: func(a *ipam.Allocation) { a.Owner.Node = "n1" }, nodes: []census.Node{{Name: "n1"}},
			want: unreachable, other: decision{judge.Held, judge.NodeUnreachable, "node n1 is not ready"}},
		{name: "the other holds no address", second: func(a *ipam.Allocation) { a.EmptyHandle, a.IP = true, netip.Addr{} },
			want: absent, other: decision{judge.Suspected, judge.EmptyHandle, ""}},
		{name: "the other has another group", second: func(a *ipam.Allocation) { a.Unreadable, a.Group = "no JSON", "c" },
			want: absent, other: decision{judge.Held, judge.Unreadable, "no JSON"}},
	} {
		for _, swapped := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, swapped %v", tt.name, swapped), func(t *testing.T) {
				s := situation{pools: groupOfTwo(tt.second), pods: tt.pods, nodes: tt.nodes}
				want := []decision{tt.want, tt.other}
				if swapped {
					slices.Reverse(s.pools)
					slices.Reverse(want)
				}
				var got []decision
				for _, d := range s.judge(t, noon) {
					got = append(got, decisionOf(d))
					if kept := d.Verdict == judge.Held || d.Verdict == judge.InUse; kept != d.Due.IsZero() {
						t.Errorf("%s is due at %v", d.Verdict, d.Due)
					}
				}
				equal(t, "verdicts", got, want)
			})
		}
	}
}

// Promise 1, 2. A group can be in several stores.
func TestGroupOfTwoBackendsIsKeptTogether(t *testing.T) {
	pools := groupOfTwo(func(a *ipam.Allocation) { a.Unreadable = "no JSON" })
	inv := inventory(t, fixedStore{pools[0]}, namedStore{fixedStore{pools[1]}, "store"})
	decisions := judge.Judge(noon, situation{}.terms(), inv, censusOf(), ledger.Ledger{})
	equal(t, "verdict", decisionOf(decisions[0]), siblingKept("Unreadable"))
}

// Promise 4. The group waits for the allocation with the latest due time. The ledger
// still has the times of the others.
func TestGroupWaitsForItsLastMember(t *testing.T) {
	patient := func(grace time.Duration) func(*policy.Policy) {
		return func(p *policy.Policy) {
			p.GracePeriod = &policy.Duration{Duration: grace}
			p.Rules = []policy.Rule{{
				Match:       policy.Match{Pods: []string{"other"}},
				GracePeriod: &policy.Duration{Duration: time.Hour},
			}}
		}
	}
	for _, tt := range []struct {
		name  string
		grace time.Duration
		first func(*ipam.Allocation)
		known int // how many times the ledger has
	}{
		{"with a grace of its own", 15 * time.Minute, func(*ipam.Allocation) {}, 2},
		{"without a grace", 0, func(*ipam.Allocation) {}, 1},
		{"although a run had begun to release it", 15 * time.Minute, func(a *ipam.Allocation) { a.Interrupted = true }, 1},
	} {
		for _, swapped := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, swapped %v", tt.name, swapped), func(t *testing.T) {
				s := situation{pools: groupOfTwo(func(a *ipam.Allocation) { a.Owner.Pod = other }), policy: patient(tt.grace)}
				tt.first(&s.pools[0].Allocations[0])
				if swapped {
					slices.Reverse(s.pools)
				}
				s.ledger = s.seen(t, noon)
				equal(t, "remembered", s.ledger.Len(), tt.known)
				for _, at := range []time.Time{noon.Add(30 * time.Minute), noon.Add(time.Hour - time.Minute - time.Second)} {
					for _, d := range s.judge(t, at) {
						equal(t, "verdict", decisionOf(d), decision{judge.Suspected, judge.PodAbsent, ""})
						equal(t, "due", d.Due, noon.Add(time.Hour))
					}
					s.ledger = s.seen(t, at)
					equal(t, "remembered later", s.ledger.Len(), tt.known)
				}
				plan := judge.MakePlan(s.judge(t, noon.Add(time.Hour)))
				equal(t, "orphans", len(plan.Orphans()), 2)
			})
		}
	}
}

// Promise 4. While one allocation is in use, its siblings are not suspected.
func TestGroupThatIsKeptRestartsTheGracePeriod(t *testing.T) {
	s := situation{pools: groupOfTwo(nil)}
	s.ledger = s.seen(t, noon)
	kept := s
	kept.pods = []census.Pod{showing(other, ip2)}
	s.ledger = kept.seen(t, noon.Add(5*time.Minute))
	equal(t, "remembered", s.ledger.Len(), 0)
	for _, d := range s.judge(t, noon.Add(time.Hour)) {
		equal(t, "verdict", d.Verdict, judge.Suspected)
	}
}

// Promise 1. One allocation that is kept keeps its whole group, wherever it stands in it.
func TestOneKeptAllocationKeepsItsWholeGroup(t *testing.T) {
	for kept := range 3 {
		as := groupOf(3)
		as[kept].Unreadable = "no JSON"
		s := situation{pools: []ipam.Pool{poolOf(as...)}}
		for i, d := range s.judge(t, noon) {
			want := held(judge.SiblingKept, "its sibling "+as[kept].IP.String()+" is kept: Unreadable")
			if i == kept {
				want = held(judge.Unreadable, "no JSON")
			}
			equal(t, fmt.Sprintf("verdict on %d, where %d is kept", i, kept), decisionOf(d), want)
		}
	}
}

// groupOf returns n allocations of one group, each of another pod.
func groupOf(n int) []ipam.Allocation {
	as := reapertest.Allocations(n)
	for i := range as {
		as[i].Group = "b"
	}
	return as
}
