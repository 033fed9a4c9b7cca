package reaper

import (
	"context"
	"errors"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// acquire takes the lock for a holder, if there is one. If another run has it, it returns a
// *LockedError, and if the state namespace does not exist, an *InputError. After any other
// failure, it warns and the run continues: every write is conditional, so two runs do no harm.
func acquire(ctx context.Context, l Lock, holder string, warn func(sentences ...string)) (unlock func(), err error) {
	none := func() {}
	if l == nil {
		return none, nil
	}
	unlock, err = l.Acquire(ctx, holder)
	var held *LockedError
	var nowhere *ipam.InputError
	switch {
	case errors.As(err, &held), errors.As(err, &nowhere):
		return none, err
	case err != nil:
		warn("the lock could not be taken, so another run may be in progress: " + printable.Error(err))
		return none, nil
	}
	return unlock, nil
}
