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

// bonded are two entries that one sandbox got, web's in the first unit and what
// may be told otherwise in the second.
func bonded(change func(*reaper.Reservation)) []reaper.Unit {
	first, second := webEntry(), webEntry()
	second.IP, second.Token = ip2, "t2"
	first.Bond, second.Bond = "b", "b"
	if change != nil {
		change(&second)
	}
	here, there := pool(first), pool(second)
	there.Name = "there"
	return []reaper.Unit{here, there}
}

// keptBy is the verdict on an entry that is bound to one that is kept.
func keptBy(reason string) finding {
	return finding{reaper.Held, reaper.BondKept, "its sandbox has 10.0.0.2 too: " + reason}
}

// Promise 1, 2. Web's own entry is ownerless, were it not for the other one.
func TestEntryIsKeptWithWhatItIsBoundTo(t *testing.T) {
	absent := finding{reaper.Suspected, reaper.PodAbsent, ""}
	for _, tt := range []struct {
		name   string
		second func(*reaper.Reservation)
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
		{name: "the other is another pod's, which exists", second: func(r *reaper.Reservation) { r.Owner.Pod = other },
			pods: []reaper.Pod{{Ref: other}}, want: keptBy("PodPresent"), other: finding{reaper.InUse, reaper.PodPresent, ""}},
		{name: "the other is another pod's, which is gone", second: func(r *reaper.Reservation) { r.Owner.Pod = other }, want: absent, other: absent},
		{name: "the other cannot be understood", second: func(r *reaper.Reservation) { r.Unreadable = "no JSON" },
			want: keptBy("Unreadable"), other: finding{reaper.Held, reaper.Unreadable, "no JSON"}},
		{name: "nothing of the other can be understood", second: func(r *reaper.Reservation) {
			*r = reaper.Reservation{Key: "abc", Bond: "b", Unreadable: "no JSON"}
		}, want: finding{reaper.Held, reaper.BondKept, "its sandbox has abc too: Unreadable"}, other: finding{reaper.Held, reaper.Unreadable, "no JSON"}},
		{name: "the other is not a pod's", second: func(r *reaper.Reservation) { r.Foreign = "a tunnel" },
			want: keptBy("NotPodOwned"), other: finding{reaper.Held, reaper.NotPodOwned, "a tunnel"}},
		{name: "the other's pod is guessed", second: func(r *reaper.Reservation) { r.Inferred = true },
			want: keptBy("OwnerUnknown"), other: finding{reaper.Held, reaper.OwnerUnknown, "it does not say that it is a pod's"}},
		{name: "the other has no token", second: func(r *reaper.Reservation) { r.Token = "" },
			want: keptBy("NoToken"), other: finding{reaper.Held, reaper.NoToken, ""}},
		{name: "the other is too young", second: func(r *reaper.Reservation) { r.Created = noon },
			want: keptBy("TooYoung"), other: finding{reaper.Held, reaper.TooYoung, ""}},
		{name: "a rule holds the other", second: func(r *reaper.Reservation) { r.Owner.Pod = other },
			policy: func(p *policy.Policy) {
				p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"other"}}, Hold: true}}
			}, want: keptBy("RuleHold"), other: finding{reaper.Held, reaper.RuleHold, ""}},
		{name: "the other is out of scope", second: func(r *reaper.Reservation) { r.Owner.Pod.Namespace = "prod" },
			policy: func(p *policy.Policy) { p.Namespaces.Exclude = []string{"prod"} },
			want:   keptBy("OutOfScope"), other: finding{reaper.Held, reaper.OutOfScope, ""}},
		{name: "the other's pod comes back", second: func(r *reaper.Reservation) { r.Owner.Pod.Name = "db-0" },
			sets: []reaper.StatefulSet{{Namespace: "default", Name: "db", Replicas: 1}},
			want: keptBy("Retained"), other: finding{reaper.Held, reaper.Retained, "its StatefulSet brings the pod back"}},
		{name: "the other's node is not ready", second: func(r *reaper.Reservation) { r.Owner.Node = "n1" }, nodes: []reaper.Node{{Name: "n1"}},
			want: keptBy("NodeUnreachable"), other: finding{reaper.Held, reaper.NodeUnreachable, "node n1 is not ready"}},
		{name: "the other holds no address", second: func(r *reaper.Reservation) { r.Remnant, r.IP = true, netip.Addr{} },
			want: absent, other: finding{reaper.Suspected, reaper.NoAddress, ""}},
		{name: "the other has another bond", second: func(r *reaper.Reservation) { r.Unreadable, r.Bond = "no JSON", "c" },
			want: absent, other: finding{reaper.Held, reaper.Unreadable, "no JSON"}},
		{name: "the other has no bond", second: func(r *reaper.Reservation) { r.Unreadable, r.Bond = "no JSON", "" },
			want: absent, other: finding{reaper.Held, reaper.Unreadable, "no JSON"}},
	} {
		for _, swapped := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, swapped %v", tt.name, swapped), func(t *testing.T) {
				s := scene{units: bonded(tt.second), policy: tt.policy, pods: tt.pods, sets: tt.sets, nodes: tt.nodes}
				want := []finding{tt.want, tt.other}
				if swapped {
					slices.Reverse(s.units)
					slices.Reverse(want)
				}
				var got []finding
				for _, v := range s.judge(t, noon) {
					got = append(got, found(v))
					if kept := v.Standing == reaper.Held || v.Standing == reaper.InUse; kept != v.Due.IsZero() {
						t.Errorf("%s is due at %v", v.Standing, v.Due)
					}
				}
				equal(t, "verdicts", got, want)
			})
		}
	}
}

// Promise 1. Entries without a bond are not bound to each other.
func TestEntriesWithoutABondStandAlone(t *testing.T) {
	units := bonded(func(r *reaper.Reservation) { r.Unreadable, r.Bond = "no JSON", "" })
	units[0].Reservations[0].Bond = ""
	s := scene{units: units}
	equal(t, "verdict", found(s.judge(t, noon)[0]), finding{reaper.Suspected, reaper.PodAbsent, ""})
}

// A bond is a word of one backend.
func TestBondsOfTwoBackendsAreTwo(t *testing.T) {
	units := bonded(func(r *reaper.Reservation) { r.Unreadable = "no JSON" })
	inv := inventory(t, fixedStore{units[0]}, script{"store", []step{{unit: units[1]}}})
	verdicts := reaper.Judge(noon, scene{}.terms(), inv, censusOf(), reaper.Ledger{})
	equal(t, "verdict", found(verdicts[0]), finding{reaper.Suspected, reaper.PodAbsent, ""})
}

// Promise 7. What is kept for a reason of its own says that, and the rest names
// the first that is kept.
func TestBondNamesTheFirstThatIsKept(t *testing.T) {
	units := bonded(func(r *reaper.Reservation) { r.Unreadable = "no JSON" })
	third, fourth := webEntry(), webEntry()
	third.Key, third.IP, third.Bond, third.Foreign = "3", netip.MustParseAddr("10.0.0.3"), "b", "a tunnel"
	fourth.Key, fourth.Bond = "4", "b"
	units[1].Reservations = append(units[1].Reservations, third, fourth)
	var got []finding
	for _, v := range (scene{units: units}).judge(t, noon) {
		got = append(got, found(v))
	}
	equal(t, "verdicts", got, []finding{
		keptBy("Unreadable"), {reaper.Held, reaper.Unreadable, "no JSON"}, {reaper.Held, reaper.NotPodOwned, "a tunnel"}, keptBy("Unreadable"),
	})
}

// Promise 2, 3.
func TestBondWithoutACensus(t *testing.T) {
	inv := inventory(t, fixedStore(bonded(nil)))
	for _, v := range reaper.Judge(noon, scene{policy: releaseAll}.terms(), inv, reaper.Census{}, reaper.Ledger{}) {
		equal(t, "verdict", found(v), finding{reaper.Held, reaper.NoCensus, ""})
	}
}

// Promise 4. They wait for the one that has to wait longest, and what is
// remembered of the others is not lost by that.
func TestBondWaitsForItsLastMember(t *testing.T) {
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
		first func(*reaper.Reservation)
		known int // to the ledger
	}{
		{"with a grace of its own", 15 * time.Minute, func(*reaper.Reservation) {}, 2},
		{"without a grace", 0, func(*reaper.Reservation) {}, 1},
		{"although a run had begun to release it", 15 * time.Minute, func(r *reaper.Reservation) { r.Interrupted = true }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := scene{units: bonded(func(r *reaper.Reservation) { r.Owner.Pod = other }), policy: patient(tt.grace)}
			tt.first(&s.units[0].Reservations[0])
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
func TestBondThatIsKeptRestartsTheGracePeriod(t *testing.T) {
	s := scene{units: bonded(nil)}
	s.ledger = s.seen(t, noon)
	kept := s
	kept.pods = []reaper.Pod{showing(other, ip2)}
	s.ledger = kept.seen(t, noon.Add(5*time.Minute))
	equal(t, "remembered", s.ledger.Len(), 0)
	for _, v := range s.judge(t, noon.Add(time.Hour)) {
		equal(t, "standing", v.Standing, reaper.Suspected)
	}
}

// An entry that is listed again in another bond waits on: its token is the same.
func TestBondIsNoPartOfTheIdentity(t *testing.T) {
	s := scene{units: bonded(nil)}
	s.ledger = s.seen(t, noon)
	for i := range s.units {
		s.units[i].Reservations[0].Bond = ""
	}
	for _, v := range s.judge(t, noon.Add(15*time.Minute)) {
		equal(t, "standing", v.Standing, reaper.Orphaned)
	}
}

// Promise 1, 4. Whatever the entries: a bond is kept, waits or goes as one, what
// is kept without bonds is kept with them, and nothing else changes.
func TestBondsOnlyEverKeep(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var units []reaper.Unit
		pods := []reaper.Pod{{Ref: other, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, 3})}}}
		for n := range rapid.IntRange(1, 4).Draw(rt, "units") {
			u := reaper.Unit{Name: fmt.Sprint("unit-", n)}
			for i := range rapid.IntRange(0, 4).Draw(rt, "entries") {
				r := webEntry()
				r.Key, r.Token = fmt.Sprint(i), rapid.SampledFrom([]string{"t", "t", "t", "t", "t", ""}).Draw(rt, "token")
				r.IP = netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(0, 20).Draw(rt, "address"))})
				r.Owner.Pod = rapid.SampledFrom([]reaper.PodRef{web, web, web, {Namespace: "default", Name: "slow"}, other}).Draw(rt, "pod")
				r.Bond = rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(rt, "bond")
				r.Interrupted = rapid.IntRange(0, 9).Draw(rt, "interrupted") == 0
				r.Remnant = rapid.IntRange(0, 9).Draw(rt, "remnant") == 0
				u.Reservations = append(u.Reservations, r)
			}
			units = append(units, u)
		}
		s := scene{units: units, pods: pods}
		s.policy = func(p *policy.Policy) {
			p.GracePeriod = &policy.Duration{Duration: rapid.SampledFrom([]time.Duration{0, 0, time.Minute}).Draw(rt, "grace")}
			p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"slow"}}, GracePeriod: &policy.Duration{Duration: time.Hour}}}
		}
		terms := s.terms()
		census := func() reaper.Census { return reaper.NewCensus(time.Now(), pods, nil) }
		with := reaper.Judge(noon, terms, inventory(t, fixedStore(units)), census(), reaper.Ledger{})
		for i := range units {
			units[i].Reservations = slices.Clone(units[i].Reservations)
			for n := range units[i].Reservations {
				units[i].Reservations[n].Bond = ""
			}
		}
		without := reaper.Judge(noon, terms, inventory(t, fixedStore(units)), census(), reaper.Ledger{})

		bonds := make(map[string][]reaper.Verdict)
		alone := make(map[string][]reaper.Verdict)
		for i, v := range with {
			if b := v.Reservation.Bond; b != "" {
				bonds[b], alone[b] = append(bonds[b], v), append(alone[b], without[i])
				continue
			}
			if found(v) != found(without[i]) {
				rt.Errorf("%s has no bond, and is %v instead of %v", v.Reservation.Key, found(v), found(without[i]))
			}
		}
		for b, members := range bonds {
			kept := slices.ContainsFunc(alone[b], func(v reaper.Verdict) bool {
				return v.Standing == reaper.Held || v.Standing == reaper.InUse
			})
			var due time.Time
			for _, v := range alone[b] {
				if v.Due.After(due) {
					due = v.Due
				}
			}
			for i, v := range members {
				was := alone[b][i]
				switch ripe := v.Standing == reaper.Orphaned; {
				case was.Standing == reaper.Held || was.Standing == reaper.InUse:
					if found(v) != found(was) {
						rt.Errorf("%s of bond %s is %v instead of %v", v.Reservation.Key, b, found(v), found(was))
					}
				case kept && v.Reason != reaper.BondKept:
					rt.Errorf("%s of bond %s is %s %s beside what is kept", v.Reservation.Key, b, v.Standing, v.Reason)
				case kept:
				case ripe != !noon.Before(due) || !v.Due.Equal(due) || v.Reason != was.Reason:
					rt.Errorf("%s of bond %s is %s %s, due %v, want it due %v", v.Reservation.Key, b, v.Standing, v.Reason, v.Due, due)
				}
			}
		}
	})
}
