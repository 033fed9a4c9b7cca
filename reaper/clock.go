package reaper

import (
	"fmt"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// maxClockSkew is the most by which the clocks of nodes and API servers are expected to differ,
// where a rule compares their times.
const maxClockSkew = time.Minute

// leastTolerance is what a clock may differ from the API server's for any policy. A Date has
// whole seconds, and an answer takes its time.
const leastTolerance = 5 * time.Second

// clockTolerance returns the most by which the clock of a run may differ from the API server's: a
// tenth of the shortest wait. The ledger may be of a run on another machine, whose clock may
// differ as much the other way. Then a wait is a fifth shorter than it looks.
func clockTolerance(p policy.Policy) time.Duration {
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

// checkClock returns an error if the clock is wrong: by a wrong clock, a grace period
// may end too early, and an allocation may look too old.
func (r *run) checkClock() error {
	if r.ClockSkew == nil {
		return nil
	}
	skew, known := r.ClockSkew()
	most := clockTolerance(r.Policy)
	if !known || skew.Abs() <= most {
		return nil
	}
	where := "ahead of"
	if skew < 0 {
		where = "behind"
	}
	return fmt.Errorf("the clock here is %v %s the API server's: nothing is released until they differ by %v at most", skew.Abs(), where, most)
}
