package reaper_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
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
