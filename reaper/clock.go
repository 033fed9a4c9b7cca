package reaper

import (
	"fmt"
	"time"
)

// maxClockSkew is the most by which the clock may differ from the API server's. It is
// a fraction of the shortest wait, and longer than an API server takes to answer.
const maxClockSkew = time.Minute

// checkClock returns an error if the clock is wrong: by a wrong clock, a grace period
// may end too early, and an allocation may look too old.
func (r *run) checkClock() error {
	if r.ClockSkew == nil {
		return nil
	}
	skew, known := r.ClockSkew()
	switch {
	case known && skew > maxClockSkew:
		return fmt.Errorf("the clock here is %v ahead of the API server's: nothing is released until it is right", skew)
	case known && -skew > maxClockSkew:
		return fmt.Errorf("the clock here is %v behind the API server's: nothing is released until it is right", -skew)
	}
	return nil
}
