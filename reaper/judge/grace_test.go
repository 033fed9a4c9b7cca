package judge_test

import (
	"maps"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// atLeast is how much of a grace period of 15 minutes passes before a release: a run may
// start a little early, by the jitter of its CronJob.
const atLeast = 15*time.Minute - 15*time.Second

// Promise 4. A run first sees the allocation ownerless at noon. The grace period is the
// default of 15 minutes.
func TestGracePeriod(t *testing.T) {
	const grace = 15 * time.Minute
	for _, tt := range []struct {
		name   string
		first  time.Duration // after noon
		later  time.Duration // after noon
		change func(*situation)
		want   judge.Verdict
	}{
		{"one nanosecond short", 0, atLeast - 1, nil, judge.Suspected},
		{"a run every 15 minutes, of which the second starts early", 8 * time.Second, grace + time.Second, nil, judge.Orphaned},
		{"a short one is exact", 0, 5*time.Minute - time.Second - 1, func(s *situation) { s.policy = withGrace(5*time.Minute - time.Second) }, judge.Suspected},
		{"a short one is over", 0, 5*time.Minute - time.Second, func(s *situation) { s.policy = withGrace(5*time.Minute - time.Second) }, judge.Orphaned},
		{"a long one may not be much shorter", 0, 24*time.Hour - 15*time.Second - 1, func(s *situation) { s.policy = withGrace(24 * time.Hour) }, judge.Suspected},
		{"exactly over", 0, grace, nil, judge.Orphaned},
		{"the same run again", 0, 0, nil, judge.Suspected},
		{"the clock went backwards", 0, -time.Hour, nil, judge.Suspected},
		{"a fraction of a second is not rounded away", 700 * time.Millisecond, atLeast + 699*time.Millisecond, nil, judge.Suspected},
		{"a fraction of a second is over by the next second", 700 * time.Millisecond, grace + time.Second, nil, judge.Orphaned},
		{"the ledger is from the future", 24 * time.Hour, grace, nil, judge.Suspected},
		{"the token changed", 0, grace, func(s *situation) { s.pools[0].Allocations[0].Token = "t2" }, judge.Suspected},
		{"it is another key", 0, grace, func(s *situation) { s.pools[0].Allocations[0].Key = "2" }, judge.Suspected},
		{"it is in another pool", 0, grace, func(s *situation) { s.pools[0].Name = "elsewhere" }, judge.Suspected},
		{"the policy's grace period grew", 0, grace, func(s *situation) { s.policy = withGrace(time.Hour) }, judge.Suspected},
		{"a rule gives it a longer one", 0, grace, func(s *situation) {
			s.policy = func(p *policy.Policy) {
				p.Rules = []policy.Rule{{
					Match:       policy.Match{Pods: []string{"web"}},
					GracePeriod: &policy.Duration{Duration: time.Hour},
				}}
			}
		}, judge.Suspected},
		{"its store lets addresses rest for longer", 0, 20*time.Minute - 1, restsFor(20 * time.Minute), judge.Suspected},
		{"they have rested", 0, 20 * time.Minute, restsFor(20 * time.Minute), judge.Orphaned},
		{"its store lets addresses rest for as long as the grace period", 0, 15*time.Minute - 1, restsFor(15 * time.Minute), judge.Suspected},
		{"its store lets addresses rest for less", 0, atLeast, restsFor(10 * time.Minute), judge.Orphaned},
		{"its store lets addresses rest, and the grace period is short", 0, 10*time.Minute - 1, func(s *situation) {
			s.policy = withGrace(0)
			restsFor(10 * time.Minute)(s)
		}, judge.Suspected},
		{"an earlier run had begun to release it", 0, 0, func(s *situation) {
			s.pools[0].Allocations[0].Interrupted = true
		}, judge.Orphaned},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := situation{pools: []ipam.Pool{poolOf(webAllocation())}}
			s.ledger = s.seen(t, noon.Add(tt.first))
			if tt.change != nil {
				s.pools = []ipam.Pool{poolOf(webAllocation())}
				tt.change(&s)
			}
			equal(t, "verdict", s.judge(t, noon.Add(tt.later))[0].Verdict, tt.want)
		})
	}
}

// restsFor returns a change of the pool: its store lets addresses rest for that long.
func restsFor(d time.Duration) func(*situation) {
	return func(s *situation) { s.pools[0].Rest, s.pools[0].RestBy = d, "addresses rest" }
}

// withGrace returns a change of the policy that sets the grace period.
func withGrace(d time.Duration) func(*policy.Policy) {
	return func(p *policy.Policy) { p.GracePeriod = &policy.Duration{Duration: d} }
}

// Promise 4. After every break, the grace period begins again.
func TestBreakRestartsTheGracePeriod(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*situation)
	}{
		{"its pod was there", func(s *situation) { s.pods = []census.Pod{{Ref: web}} }},
		{"another pod had the address", func(s *situation) { s.pods = []census.Pod{showing(other, ip1)} }},
		{"it could not be read", func(s *situation) {
			a := webAllocation()
			a.Unreadable = "no JSON"
			s.pools = []ipam.Pool{poolOf(a)}
		}},
		{"its node was unreachable", func(s *situation) { s.nodes = []census.Node{notReady("n1")} }},
		{"it was not listed", func(s *situation) { s.pools = nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			first := situation{pools: []ipam.Pool{poolOf(webAllocation())}}
			meanwhile := first
			tt.change(&meanwhile)
			last := first
			meanwhile.ledger = first.seen(t, noon)
			last.ledger = meanwhile.seen(t, noon.Add(10*time.Minute))
			equal(t, "verdict", last.judge(t, noon.Add(20*time.Minute))[0].Verdict, judge.Suspected)

			last.ledger = last.seen(t, noon.Add(20*time.Minute))
			equal(t, "verdict later", last.judge(t, noon.Add(35*time.Minute))[0].Verdict, judge.Orphaned)
		})
	}
}

// Promise 4. A run by another policy, or one that could not read the allocation, saw no
// owner either.
func TestHoldKeepsTheTimeOfAnEarlierRun(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*situation)
	}{
		{"a rule held it", func(s *situation) {
			s.policy = func(p *policy.Policy) {
				p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"web"}}, Hold: true}}
			}
		}},
		{"it was out of scope", func(s *situation) {
			s.policy = func(p *policy.Policy) { p.Namespaces.Exclude = []string{"default"} }
		}},
		{"its StatefulSet wanted it", func(s *situation) {
			s.sets = []census.StatefulSet{{Namespace: "default", Name: "db", Replicas: 1}}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			if tt.name == "its StatefulSet wanted it" {
				a.Owner.Pod.Name = "db-0"
			}
			first := situation{pools: []ipam.Pool{poolOf(a)}}
			meanwhile := first
			tt.change(&meanwhile)
			equal(t, "remembered without an earlier run", meanwhile.seen(t, noon).Len(), 0)
			last := first
			meanwhile.ledger = first.seen(t, noon)
			equal(t, "verdict", meanwhile.judge(t, noon)[0].Verdict, judge.Held)
			last.ledger = meanwhile.seen(t, noon.Add(10*time.Minute))
			equal(t, "verdict", last.judge(t, noon.Add(20*time.Minute))[0].Verdict, judge.Orphaned)
		})
	}
}

// Promise 1. A pod that was force-deleted still runs for its termination grace period. A
// run remembers it from when the pod was there.
func TestPodThatEndsSlowlyKeepsItsAddressForThatLong(t *testing.T) {
	for _, tt := range []struct {
		name        string
		termination time.Duration
		grace       time.Duration
		want        time.Duration // after the first run that saw it gone
		note        string
	}{
		{"the default", 30 * time.Second, 0, 0, ""},
		{"shorter than the default", time.Second, time.Minute, time.Minute, ""},
		{"a little longer", 31 * time.Second, 0, 91 * time.Second, "the pod may take 31s to end"},
		{"an hour", time.Hour, time.Minute, time.Hour + time.Minute, "the pod may take 1h0m0s to end"},
		{"an hour, and a longer grace period", time.Hour, 2 * time.Hour, 2 * time.Hour, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newSequence(fixedStore{poolOf(webAllocation())})
			releaseNow(&w.policy)
			w.policy.GracePeriod = &policy.Duration{Duration: tt.grace}
			pod := showing(web, ip1)
			pod.Node, pod.TerminationGrace = "n1", tt.termination
			w.cluster([]census.Pod{pod}, ready("n1"))
			w.run(t)
			w.cluster(nil, ready("n1"))
			if tt.want > 0 {
				d := w.run(t)[0]
				equal(t, "verdict", decisionOf(d), decision{judge.Suspected, judge.PodAbsent, tt.note})
				equal(t, "due", d.Due, noon.Add(tt.want))
				w.now = noon.Add(tt.want - early(tt.grace) - time.Second)
				kept(t, "a second before", w.run(t)[0])
			}
			w.now = noon.Add(tt.want)
			goes(t, "in time", w.run(t)[0])
		})
	}
}

// Promise 1. The pod of that name is a different one by now. What was remembered about
// the former one counts.
func TestNewPodOfTheNameDoesNotShortenTheEndOfTheFormer(t *testing.T) {
	a := webAllocation()
	a.Owner.UID = "old"
	w := newSequence(fixedStore{poolOf(a)})
	pod := showing(web, ip1)
	pod.UID, pod.Node, pod.TerminationGrace = "old", "n1", time.Hour
	w.cluster([]census.Pod{pod}, ready("n1"), ready("n2"))
	w.run(t)
	w.cluster([]census.Pod{{Ref: web, UID: "new", Node: "n2"}}, ready("n1"), ready("n2"))
	equal(t, "verdict", decisionOf(w.run(t)[0]), decision{judge.Suspected, judge.PodReplaced, "the pod may take 1h0m0s to end"})
}

// Promise 1. A kubelet that was cut off learns of the deletions when its node is ready
// again, and then ends the pods in their time.
func TestNodeThatIsReadyAgainGetsTimeToEndItsPods(t *testing.T) {
	back := func(name string, since time.Time) census.Node {
		return census.Node{Name: name, Ready: true, Since: since, Created: noon.Add(-24 * time.Hour)}
	}
	for _, tt := range []struct {
		name string
		node string // of the allocation
		back census.Node
		want time.Duration // after noon
	}{
		{"long ago", "n1", back("n1", noon.Add(-time.Hour)), 0},
		{"just now", "n1", back("n1", noon), 90 * time.Second},
		{"some minutes ago, by its own clock", "n1", back("n1", noon.Add(-10*time.Minute)), 90 * time.Second},
		{"soon, by its own clock", "n1", back("n1", noon.Add(time.Minute)), 150 * time.Second},
		{"in the far future, by its own clock", "n1", back("n1", noon.Add(time.Hour)), 0},
		{"another node", "n2", back("n1", noon), 0},
		{"the node is not known", "", back("n1", noon), 90 * time.Second},
		{"the node is not known, and the other is new", "", census.Node{Name: "n1", Ready: true, Since: noon, Created: noon.Add(-time.Minute)}, 0},
		{"the node does not say", "n1", ready("n1"), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			a.Owner.Node = tt.node
			s := situation{pools: []ipam.Pool{poolOf(a)}, nodes: []census.Node{tt.back, ready("n2")}, policy: releaseNow}
			s.ledger = s.seen(t, noon)
			if tt.want > 0 {
				equal(t, "verdict a second before", s.judge(t, noon.Add(tt.want-time.Second))[0].Verdict, judge.Suspected)
			}
			equal(t, "verdict", s.judge(t, noon.Add(tt.want))[0].Verdict, judge.Orphaned)
		})
	}
}

// Promise 1, 2. A tenant names a termination grace period of 292 years.
func TestAnyTerminationGraceLeavesTheLedgerWhole(t *testing.T) {
	w := newSequence(namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"})
	pod := showing(web, ip1)
	pod.Node, pod.TerminationGrace = "n1", 9223372036*time.Second // the longest
	w.cluster([]census.Pod{pod}, ready("n1"))
	w.run(t) // the stored ledger can be read
	w.cluster(nil, ready("n1"))
	w.run(t)
	w.now = w.now.Add(time.Hour)
	kept(t, "pod ends slowly", w.entryIn(t, "whereabouts"))
}

// Promise 1. A restarted pod still shows its old address, so the entry of its new sandbox looks
// replaced, and is too young. Its time must not count once the pod is gone.
func TestTimeOfAnADDThatLooksReplacedDoesNotCountForAPodThatIsGone(t *testing.T) {
	a := calicoOf("n1")
	a.Created = noon.Add(-time.Second)
	a.Owner.Sandbox, a.Group = "s2", "handle-s2"
	w := newSequence(namedStore{fixedStore{poolOf(a)}, "calico"})
	pod := showing(web, ip1)
	pod.Node, pod.Sandbox, pod.TerminationGrace = "n1", "s1", time.Hour
	w.cluster([]census.Pod{pod}, ready("n1"))
	w.run(t)
	// The pod shows ip2 until a second before the next run. It is deleted by force.
	w.now = noon.Add(15 * time.Minute)
	w.cluster(nil, ready("n1"))
	e := w.entryIn(t, "calico")
	kept(t, "first sight of a pod that is gone", e)
	w.now = noon.Add(62 * time.Minute) // 47 minutes after the deletion
	kept(t, "before its hour is over", w.entryIn(t, "calico"))
}

// A store may put an allocation back with the token that it had, so the ledger knows it.
func TestRestoreBeginsTheTimeAnewAlsoWithTheSameToken(t *testing.T) {
	s := given(terms(func(p *policy.Policy) { p.Journal.RestoreHold = &policy.Duration{} }))
	s.ledger = s.seen(t, noon)
	back := s.judge(t, noon)[0].Allocation
	s.ledger = s.ledger.WithRestored(maps.All(map[*ipam.Allocation]ledger.Place{back: {}}), noon.Add(time.Hour))
	equal(t, "due", s.judge(t, noon.Add(61*time.Minute))[0].Due, noon.Add(75*time.Minute))
}
