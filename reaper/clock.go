package reaper

import (
	"fmt"
	"time"
)

// maxAhead is by how much a clock may be wrong: it is a part of the shortest time
// that anything waits for, and more than an API server takes to answer.
const maxClockSkew = time.Minute

// checkClock returns an error where the clock is wrong. No grace period could be
// believed that it says is over, nor any age.
func (r *run) checkClock() error {
	if r.ClockSkew == nil {
		return nil
	}
	clockSkew, known := r.ClockSkew()
	switch {
	case known && clockSkew > maxClockSkew:
		return fmt.Errorf("the clock here is %v ahead of the API server's: nothing is released until it is right", clockSkew)
	case known && -clockSkew > maxClockSkew:
		return fmt.Errorf("the clock here is %v behind the API server's: nothing is released until it is right", -clockSkew)
	}
	return nil
}
