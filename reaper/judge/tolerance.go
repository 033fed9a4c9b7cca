package judge

import (
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// maxClockSkew is the most by which the clocks of nodes and API servers are expected to differ,
// where a rule compares their times.
const maxClockSkew = time.Minute

// leastTolerance is what a clock may differ from the API server's for any policy. A Date has
// whole seconds, and an answer takes its time.
const leastTolerance = 5 * time.Second

// ClockTolerance returns the most by which the clock of a run may differ from the API server's: a
// tenth of the shortest wait. The ledger may be of a run on another machine, whose clock may
// differ as much the other way. Then a wait is a fifth shorter than it looks.
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

	// endMargin is what a kubelet gets beyond that, to notice the deletion and to end
	// the sandbox.
	endMargin = time.Minute
)

// lateNews is how far a node may be back already, or by its own clock not yet, while its
// kubelet may still be ending pods.
const lateNews = 15 * time.Minute

// mostOfGone is how long an allocation waits at most for the pods of a node that is gone: its
// machine may still run, and no run knows it.
const mostOfGone = time.Hour

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
