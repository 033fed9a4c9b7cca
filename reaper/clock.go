package reaper

import (
	"fmt"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// checkClock returns an error if the clock is wrong: with a wrong clock, a grace period
// may end too early, and an allocation may look too old.
func (r *run) checkClock() error {
	if r.ClockSkew == nil {
		return nil
	}
	skew, known := r.ClockSkew()
	most := judge.ClockTolerance(r.Policy)
	if !known || skew.Abs() <= most {
		return nil
	}
	where := "ahead of"
	if skew < 0 {
		where = "behind"
	}
	return fmt.Errorf("the clock here is %v %s the API server's: nothing is released until they differ by at most %v", skew.Abs(), where, most)
}
