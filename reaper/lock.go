package reaper

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Lock keeps two runs of one installation from going on at the same time. Two such
// runs would do no harm, but each would disturb the other. No promise rests on the lock.
type Lock interface {
	// Acquire takes the lock for a holder with a unique name, and keeps it until
	// release is called. It returns a *LockedError if another holder has the lock, and an
	// *InputError if nothing can be written at the place of the lock.
	Acquire(ctx context.Context, holder string) (release func(), err error)
}

// A LockedError says that another run is going on.
type LockedError struct {
	Holder string
	Since  time.Time // when it took the lock
	Lock   string    // the object, for people
}

// Error names the holder of the lock, and since when it has it.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s has been running since %s (%s); nothing was done",
		e.Holder, e.Since.UTC().Format(time.RFC3339), e.Lock)
}

// lock takes the lock if this run may write. If another run has it, lock returns a
// *LockedError, and if the state namespace does not exist, an *InputError. After any other failure, the run warns and goes on: every write is
// conditional, so two runs do no harm.
func (r *run) lock(ctx context.Context) (unlock func(), err error) {
	none := func() {}
	if r.Lock == nil || *r.Policy.DryRun {
		return none, nil
	}
	unlock, err = r.Lock.Acquire(ctx, r.ID)
	var held *LockedError
	var nowhere *InputError
	switch {
	case errors.As(err, &held), errors.As(err, &nowhere):
		return none, err
	case err != nil:
		r.warn("the lock could not be taken, so another run may go on at the same time: " + err.Error())
		return none, nil
	}
	return unlock, nil
}
