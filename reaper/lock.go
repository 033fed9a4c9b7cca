package reaper

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Lock keeps two runs of one installation from going on at the same time.
// They would do no harm, but disturb each other. Nothing that is safe rests on
// it.
type Lock interface {
	// Acquire takes the lock for a holder, whose name no other has, and keeps it
	// until release is called, which gives it back. It returns a *LockedError where
	// somebody else has it.
	Acquire(ctx context.Context, holder string) (release func(), err error)
}

// A LockedError says that another run is going on.
type LockedError struct {
	Holder string
	Since  time.Time // when it took the lock
	Lock   string    // the object, for people
}

// Error says who has the lock, and since when.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s has been running since %s (%s); nothing was done",
		e.Holder, e.Since.UTC().Format(time.RFC3339), e.Lock)
}

// lock keeps other runs away, if this one may write. Where that fails, for another
// reason than that there is one, this goes on: what is safe does not rest on it.
func (r *run) lock(ctx context.Context) (unlock func(), err error) {
	none := func() {}
	if r.Lock == nil || *r.Policy.DryRun {
		return none, nil
	}
	unlock, err = r.Lock.Acquire(ctx, r.ID)
	var held *LockedError
	switch {
	case errors.As(err, &held):
		return none, err
	case err != nil:
		r.warn("nothing keeps another run away: " + err.Error())
		return none, nil
	}
	return unlock, nil
}
