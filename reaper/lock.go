package reaper

import (
	"context"
	"errors"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

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
	var nowhere *ipam.InputError
	switch {
	case errors.As(err, &held), errors.As(err, &nowhere):
		return none, err
	case err != nil:
		r.warn("the lock could not be taken, so another run may go on at the same time: " + err.Error())
		return none, nil
	}
	return unlock, nil
}
