package reaper_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// grouped are two entries that one sandbox got, web's in the first pool and what
// may be told otherwise in the second.
func grouped(change func(*reaper.Allocation)) []reaper.Pool {
	first, second := webEntry(), webEntry()
	second.IP, second.Token = ip2, "t2"
	first.Group, second.Group = "b", "b"
	if change != nil {
		change(&second)
	}
	here, there := poolOf(first), poolOf(second)
	there.Name = "there"
	return []reaper.Pool{here, there}
}

// keptBy is the verdict on an entry that is bound to one that is kept.
func keptBy(reason string) finding {
	return finding{reaper.Held, reaper.SiblingKept, "its sibling 10.0.0.2 is kept: " + reason}
}

// Promise 1, 2. Web's own entry is ownerless, were it not for the other one.
func TestEntryIsKeptWithWhatItIsBoundTo(t *testing.T) {
	absent := finding{reaper.Suspected, reaper.PodAbsent, ""}
	for _, tt := range []struct {
		name   string
		second func(*reaper.Allocation)
		policy func(*policy.Policy)
		pods   []reaper.Pod
		sets   []reaper.StatefulSet
		nodes  []reaper.Node
		want   finding // of the first
		other  finding // of the second
	}{
		{name: "both are ownerless", want: absent, other: absent},
		{name: "a pod shows the other", pods: []reaper.Pod{showing(other, ip2)},
			want: keptBy("AddressInUse"), other: finding{reaper.InUse, reaper.AddressInUse, "shown by pod default/other"}},
		{name: "the other is another pod's, which exists", second: func(r *reaper.Allocation) { r.Owner.Pod = other },
			pods: []reaper.Pod{{Ref: other}}, want: keptBy("PodPresent"), other: finding{reaper.InUse, reaper.PodPresent, ""}},
		{name: "the other is another pod's, which is gone", second: func(r *reaper.Allocation) { r.Owner.Pod = other }, want: absent, other: absent},
		{name: "the other cannot be understood", second: func(r *reaper.Allocation) { r.Unreadable = "no JSON" },
			want: keptBy("Unreadable"), other: finding{reaper.Held, reaper.Unreadable, "no JSON"}},
		{name: "nothing of the other can be understood", second: func(r *reaper.Allocation) {
			*r = reaper.Allocation{Key: "abc", Group: "b", Unreadable: "no JSON"}
		}, want: finding{reaper.Held, reaper.SiblingKept, "its sibling abc is kept: Unreadable"}, other: finding{reaper.Held, reaper.Unreadable, "no JSON"}},
		{name: "the other is not a pod's", second: func(r *reaper.Allocation) { r.Foreign = "a tunnel" },
			want: keptBy("NotPodOwned"), other: finding{reaper.Held, reaper.NotPodOwned, "a tunnel"}},
		{name: "the other's pod is guessed", second: func(r *reaper.Allocation) { r.Inferred = true },
			want: keptBy("OwnerUnknown"), other: finding{reaper.Held, reaper.OwnerUnknown, "its handle does not say that it belongs to a pod"}},
		{name: "the other has no token", second: func(r *reaper.Allocation) { r.Token = "" },
			want: keptBy("NoToken"), other: finding{reaper.Held, reaper.NoToken, ""}},
		{name: "the other is too young", second: func(r *reaper.Allocation) { r.Created = noon },
			want: keptBy("TooYoung"), other: finding{reaper.Held, reaper.TooYoung, ""}},
		{name: "a rule holds the other", second: func(r *reaper.Allocation) { r.Owner.Pod = other },
			policy: func(p *policy.Policy) {
				p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"other"}}, Hold: true}}
			}, want: keptBy("RuleHold"), other: finding{reaper.Held, reaper.RuleHold, ""}},
		{name: "the other is out of scope", second: func(r *reaper.Allocation) { r.Owner.Pod.Namespace = "prod" },
			policy: func(p *policy.Policy) { p.Namespaces.Exclude = []string{"prod"} },
			want:   keptBy("OutOfScope"), other: finding{reaper.Held, reaper.OutOfScope, ""}},
		{name: "the other's pod comes back", second: func(r *reaper.Allocation) { r.Owner.Pod.Name = "db-0" },
			sets: []reaper.StatefulSet{{Namespace: "default", Name: "db", Replicas: 1}},
			want: keptBy("Retained"), other: finding{reaper.Held, reaper.Retained, "its StatefulSet brings the pod back"}},
		{name: "the other's node is not ready", second: func(r *reaper.Allocation) { r.Owner.Node = "n1" }, nodes: []reaper.Node{{Name: "n1"}},
			want: keptBy("NodeUnreachable"), other: finding{reaper.Held, reaper.NodeUnreachable, "node n1 is not ready"}},
		{name: "the other holds no address", second: func(r *reaper.Allocation) { r.EmptyHandle, r.IP = true, netip.Addr{} },
			want: absent, other: finding{reaper.Suspected, reaper.EmptyHandle, ""}},
		{name: "the other has another bond", second: func(r *reaper.Allocation) { r.Unreadable, r.Group = "no JSON", "c" },
			want: absent, other: finding{reaper.Held, reaper.Unreadable, "no JSON"}},
		{name: "the other has no bond", second: func(r *reaper.Allocation) { r.Unreadable, r.Group = "no JSON", "" },
			want: absent, other: finding{reaper.Held, reaper.Unreadable, "no JSON"}},
	} {
		for _, swapped := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, swapped %v", tt.name, swapped), func(t *testing.T) {
				s := scene{pools: grouped(tt.second), policy: tt.policy, pods: tt.pods, sets: tt.sets, nodes: tt.nodes}
				want := []finding{tt.want, tt.other}
				if swapped {
					slices.Reverse(s.pools)
					slices.Reverse(want)
				}
				var got []finding
				for _, v := range s.judge(t, noon) {
					got = append(got, found(v))
					if kept := v.Verdict == reaper.Held || v.Verdict == reaper.InUse; kept != v.Due.IsZero() {
						t.Errorf("%s is due at %v", v.Verdict, v.Due)
					}
				}
				equal(t, "verdicts", got, want)
			})
		}
	}
}

// Promise 1. Entries without a group are not bound to each other.
func TestEntriesWithoutAGroupStandAlone(t *testing.T) {
	pools := grouped(func(r *reaper.Allocation) { r.Unreadable, r.Group = "no JSON", "" })
	pools[0].Allocations[0].Group = ""
	s := scene{pools: pools}
	equal(t, "verdict", found(s.judge(t, noon)[0]), finding{reaper.Suspected, reaper.PodAbsent, ""})
}

// A group is a word of one backend.
func TestGroupsOfTwoBackendsAreTwo(t *testing.T) {
	pools := grouped(func(r *reaper.Allocation) { r.Unreadable = "no JSON" })
	inv := inventory(t, fixedStore{pools[0]}, script{"store", []step{{pool: pools[1]}}})
	decisions := reaper.Judge(noon, scene{}.terms(), inv, censusOf(), reaper.Ledger{})
	equal(t, "verdict", found(decisions[0]), finding{reaper.Suspected, reaper.PodAbsent, ""})
}

// Promise 7. What is kept for a reason of its own says that, and the rest names
// the first that is kept.
func TestGroupNamesTheFirstThatIsKept(t *testing.T) {
	pools := grouped(func(r *reaper.Allocation) { r.Unreadable = "no JSON" })
	third, fourth := webEntry(), webEntry()
	third.Key, third.IP, third.Group, third.Foreign = "3", netip.MustParseAddr("10.0.0.3"), "b", "a tunnel"
	fourth.Key, fourth.Group = "4", "b"
	pools[1].Allocations = append(pools[1].Allocations, third, fourth)
	var got []finding
	for _, v := range (scene{pools: pools}).judge(t, noon) {
		got = append(got, found(v))
	}
	equal(t, "verdicts", got, []finding{
		keptBy("Unreadable"), {reaper.Held, reaper.Unreadable, "no JSON"}, {reaper.Held, reaper.NotPodOwned, "a tunnel"}, keptBy("Unreadable"),
	})
}

// Promise 2, 3.
func TestGroupWithoutACensus(t *testing.T) {
	inv := inventory(t, fixedStore(grouped(nil)))
	for _, v := range reaper.Judge(noon, scene{policy: releaseAll}.terms(), inv, reaper.Census{}, reaper.Ledger{}) {
		equal(t, "verdict", found(v), finding{reaper.Held, reaper.NoCensus, ""})
	}
}

// Promise 4. They wait for the one that has to wait longest, and what is
// remembered of the others is not lost by that.
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
		first func(*reaper.Allocation)
		known int // to the ledger
	}{
		{"with a grace of its own", 15 * time.Minute, func(*reaper.Allocation) {}, 2},
		{"without a grace", 0, func(*reaper.Allocation) {}, 1},
		{"although a run had begun to release it", 15 * time.Minute, func(r *reaper.Allocation) { r.Interrupted = true }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := scene{pools: grouped(func(r *reaper.Allocation) { r.Owner.Pod = other }), policy: patient(tt.grace)}
			tt.first(&s.pools[0].Allocations[0])
			s.ledger = s.seen(t, noon)
			equal(t, "remembered", s.ledger.Len(), tt.known)
			for _, at := range []time.Time{noon.Add(30 * time.Minute), noon.Add(time.Hour - time.Second)} {
				for _, v := range s.judge(t, at) {
					equal(t, "verdict", found(v), finding{reaper.Suspected, reaper.PodAbsent, ""})
					equal(t, "due", v.Due, noon.Add(time.Hour))
				}
				s.ledger = s.seen(t, at)
				equal(t, "remembered later", s.ledger.Len(), tt.known)
			}
			plan := reaper.MakePlan(s.judge(t, noon.Add(time.Hour)))
			equal(t, "orphans", len(plan.Orphans()), 2)
		})
	}
}

// Promise 4. While one is in use, the others are no suspects.
func TestGroupThatIsKeptRestartsTheGracePeriod(t *testing.T) {
	s := scene{pools: grouped(nil)}
	s.ledger = s.seen(t, noon)
	kept := s
	kept.pods = []reaper.Pod{showing(other, ip2)}
	s.ledger = kept.seen(t, noon.Add(5*time.Minute))
	equal(t, "remembered", s.ledger.Len(), 0)
	for _, v := range s.judge(t, noon.Add(time.Hour)) {
		equal(t, "standing", v.Verdict, reaper.Suspected)
	}
}

// An entry that is listed again in another group waits on: its token is the same.
func TestGroupIsNoPartOfTheIdentity(t *testing.T) {
	s := scene{pools: grouped(nil)}
	s.ledger = s.seen(t, noon)
	for i := range s.pools {
		s.pools[i].Allocations[0].Group = ""
	}
	for _, v := range s.judge(t, noon.Add(15*time.Minute)) {
		equal(t, "standing", v.Verdict, reaper.Orphaned)
	}
}

// Promise 1, 4. Whatever the entries: a group is kept, waits or goes as one, what
// is kept without groups is kept with them, and nothing else changes.
func TestGroupsOnlyEverKeep(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var pools []reaper.Pool
		pods := []reaper.Pod{{Ref: other, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, 3})}}}
		for n := range rapid.IntRange(1, 4).Draw(rt, "units") {
			u := reaper.Pool{Name: fmt.Sprint("unit-", n)}
			for i := range rapid.IntRange(0, 4).Draw(rt, "entries") {
				r := webEntry()
				r.Key, r.Token = fmt.Sprint(i), rapid.SampledFrom([]string{"t", "t", "t", "t", "t", ""}).Draw(rt, "token")
				r.IP = netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(0, 20).Draw(rt, "address"))})
				r.Owner.Pod = rapid.SampledFrom([]reaper.PodRef{web, web, web, {Namespace: "default", Name: "slow"}, other}).Draw(rt, "pod")
				r.Group = rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(rt, "bond")
				r.Interrupted = rapid.IntRange(0, 9).Draw(rt, "interrupted") == 0
				r.EmptyHandle = rapid.IntRange(0, 9).Draw(rt, "remnant") == 0
				u.Allocations = append(u.Allocations, r)
			}
			pools = append(pools, u)
		}
		s := scene{pools: pools, pods: pods}
		s.policy = func(p *policy.Policy) {
			p.GracePeriod = &policy.Duration{Duration: rapid.SampledFrom([]time.Duration{0, 0, time.Minute}).Draw(rt, "grace")}
			p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"slow"}}, GracePeriod: &policy.Duration{Duration: time.Hour}}}
		}
		terms := s.terms()
		census := func() reaper.Census { return reaper.NewCensus(time.Now(), pods, nil) }
		with := reaper.Judge(noon, terms, inventory(t, fixedStore(pools)), census(), reaper.Ledger{})
		for i := range pools {
			pools[i].Allocations = slices.Clone(pools[i].Allocations)
			for n := range pools[i].Allocations {
				pools[i].Allocations[n].Group = ""
			}
		}
		without := reaper.Judge(noon, terms, inventory(t, fixedStore(pools)), census(), reaper.Ledger{})

		groups := make(map[string][]reaper.Decision)
		alone := make(map[string][]reaper.Decision)
		for i, v := range with {
			if b := v.Allocation.Group; b != "" {
				groups[b], alone[b] = append(groups[b], v), append(alone[b], without[i])
				continue
			}
			if found(v) != found(without[i]) {
				rt.Errorf("%s has no bond, and is %v instead of %v", v.Allocation.Key, found(v), found(without[i]))
			}
		}
		for b, members := range groups {
			kept := slices.ContainsFunc(alone[b], func(v reaper.Decision) bool {
				return v.Verdict == reaper.Held || v.Verdict == reaper.InUse
			})
			var due time.Time
			for _, v := range alone[b] {
				if v.Due.After(due) {
					due = v.Due
				}
			}
			for i, v := range members {
				was := alone[b][i]
				switch ripe := v.Verdict == reaper.Orphaned; {
				case was.Verdict == reaper.Held || was.Verdict == reaper.InUse:
					if found(v) != found(was) {
						rt.Errorf("%s of bond %s is %v instead of %v", v.Allocation.Key, b, found(v), found(was))
					}
				case kept && v.Reason != reaper.SiblingKept:
					rt.Errorf("%s of bond %s is %s %s beside what is kept", v.Allocation.Key, b, v.Verdict, v.Reason)
				case kept:
				case ripe != !noon.Before(due) || !v.Due.Equal(due) || v.Reason != was.Reason:
					rt.Errorf("%s of bond %s is %s %s, due %v, want it due %v", v.Allocation.Key, b, v.Verdict, v.Reason, v.Due, due)
				}
			}
		}
	})
}
