package judge_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// A change changes a situation.
type change = func(*situation)

// given returns the situation in which the pool has 10.0.0.1 for the pod web, which does not
// exist, after the changes.
func given(changes ...change) situation {
	s := situation{pools: []ipam.Pool{poolOf(webAllocation())}}
	for _, c := range changes {
		c(&s)
	}
	return s
}

// entry changes the first allocation.
func entry(f func(a *ipam.Allocation)) change {
	return func(s *situation) { f(&s.pools[0].Allocations[0]) }
}

// owner gives the first allocation another owner.
func owner(o ipam.Owner) change { return entry(func(a *ipam.Allocation) { a.Owner = o }) }

// beside adds allocations to the pool.
func beside(as ...ipam.Allocation) change {
	return func(s *situation) { s.pools[0].Allocations = append(s.pools[0].Allocations, as...) }
}

// all combines several changes.
func all(changes ...change) change {
	return func(s *situation) {
		for _, c := range changes {
			c(s)
		}
	}
}

func pods(ps ...census.Pod) change           { return func(s *situation) { s.pods = append(s.pods, ps...) } }
func sets(sets ...census.StatefulSet) change { return func(s *situation) { s.sets = sets } }
func nodes(nodes ...census.Node) change      { return func(s *situation) { s.nodes = nodes } }
func sandboxes(ids ...string) change {
	return func(s *situation) { s.sandboxes = append([]string{}, ids...) }
}
func guests(ms ...census.VirtualMachine) change {
	return func(s *situation) { s.guests = append(s.guests, ms...) }
}

// terms changes the policy.
func terms(f func(p *policy.Policy)) change {
	return func(s *situation) {
		before := s.policy
		s.policy = func(p *policy.Policy) {
			if before != nil {
				before(p)
			}
			f(p)
		}
	}
}

// waits sets both times of the policy.
func waits(grace, minAge time.Duration) change {
	return terms(func(p *policy.Policy) {
		p.GracePeriod, p.MinAge = &policy.Duration{Duration: grace}, &policy.Duration{Duration: minAge}
	})
}

// holds adds a rule that holds what it matches.
func holds(m policy.Match) change {
	return terms(func(p *policy.Policy) { p.Rules = append(p.Rules, policy.Rule{Match: m, Hold: true}) })
}

// excludes excludes namespaces.
func excludes(namespaces ...string) change {
	return terms(func(p *policy.Policy) { p.Namespaces.Exclude = namespaces })
}

// A row is a situation and the decision on its first allocation.
type row struct {
	name    string
	want    decision
	changes []change
}

func of(name string, want decision, changes ...change) row { return row{name, want, changes} }

// verdicts judges each row at noon, after the changes that all have in common.
func verdicts(t *testing.T, common change, rows ...row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s := given(append([]change{common}, r.changes...)...)
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), r.want)
		})
	}
}

// A choice is a row whose decision depends on one disposition of the policy.
type choice struct {
	row
	release decision
}

func either(name string, hold, release decision, changes ...change) choice {
	return choice{of(name, hold, changes...), release}
}

// dispositions judges each row with each disposition. An invalid one holds.
func dispositions(t *testing.T, set func(*policy.Policy, policy.Disposition), rows ...choice) {
	t.Helper()
	for _, r := range rows {
		for _, d := range []policy.Disposition{policy.Hold, policy.Release, "", "nonsense"} {
			t.Run(r.name+", "+string(d), func(t *testing.T) {
				want := r.want
				if d == policy.Release {
					want = r.release
				}
				s := given(append([]change{terms(func(p *policy.Policy) { set(p, d) })}, r.changes...)...)
				equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), want)
			})
		}
	}
}

// ripens sees the situation at noon. It fails the test unless the first allocation is an orphan
// from the given time on, and not a second before that is due.
func (s situation) ripens(t *testing.T, after time.Duration) {
	t.Helper()
	s.ledger = s.seen(t, noon)
	if after > 0 {
		for _, at := range []time.Duration{0, after - early(s.terms().GracePeriod.Duration) - time.Second} {
			if d := s.judge(t, noon.Add(at))[0]; d.Verdict == judge.Orphaned {
				t.Errorf("after %v it is an orphan, want it from %v on", at, after)
			}
		}
	}
	equal(t, "verdict in time", s.judge(t, noon.Add(after))[0].Verdict, judge.Orphaned)
}

// The decisions of many rows.
var (
	present = decision{judge.InUse, judge.PodPresent, ""}
	// elsewhere is the decision on an allocation whose pod shows 10.0.0.2 on its interface.
	elsewhere = decision{judge.InUse, judge.PodPresent, "its pod shows 10.0.0.2 on net1"}
	absent    = decision{judge.Suspected, judge.PodAbsent, ""}
	shown     = decision{judge.InUse, judge.AddressInUse, "shown by pod default/other"}
	stays     = decision{judge.Held, judge.Retained, "its StatefulSet brings the pod back"}

	unreachable = decision{judge.Held, judge.NodeUnreachable, "node n1 is not ready"} // on n1
)

// held is a decision that holds.
func held(reason judge.Reason, note string) decision { return decision{judge.Held, reason, note} }
