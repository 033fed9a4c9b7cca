package judge

import (
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// maxClockSkew is the most that the clocks of nodes and API servers are expected to differ, where
// a rule compares their times.
const maxClockSkew = time.Minute

// leastTolerance is how much a clock may differ from the API server's under any policy. A Date
// has whole seconds, and an answer takes time.
const leastTolerance = 5 * time.Second

// ClockTolerance returns the most that the clock of a run may differ from the API server's: a tenth
// of the shortest wait. The ledger may come from a run on another machine, whose clock may differ
// as much the other way. Then a wait is a fifth shorter than it looks.
func ClockTolerance(p policy.Policy) time.Duration {
	shortest := defaultTermination + endMargin // of the waits that no policy shortens
	waits := []*policy.Duration{p.GracePeriod, p.MinAge}
	for _, rule := range p.Rules {
		waits = append(waits, rule.GracePeriod, rule.MinAge)
	}
	for _, d := range waits {
		if d != nil && d.Duration > 0 {
			shortest = min(shortest, d.Duration)
		}
	}
	return max(shortest/10, leastTolerance)
}

const (
	// defaultTermination is the termination grace period of a pod that names none
	// (DefaultTerminationGracePeriodSeconds in k8s.io/api/core/v1).
	defaultTermination = 30 * time.Second

	// endMargin is what a kubelet gets on top of that, to notice the deletion and to end
	// the sandbox.
	endMargin = time.Minute
)

// lateNews is how long ago, or by its own clock how far ahead, a node may have become ready
// while its kubelet may still be ending pods.
const lateNews = 15 * time.Minute

// mostOfGone is the longest that an allocation waits for the pods of a node that is gone: its
// machine may still be running, and no run can know.
const mostOfGone = time.Hour

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
