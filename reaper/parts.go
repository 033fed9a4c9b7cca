package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A Lock keeps two runs of one installation from running at the same time. Two such runs
// would do no harm, but each would disturb the other. No promise rests on the lock.
type Lock interface {
	// Acquire takes the lock for a holder with a unique name, and keeps it until
	// release is called. It returns a *LockedError if another holder has the lock, and an
	// *InputError if nothing can be written where the lock is.
	Acquire(ctx context.Context, holder string) (release func(), err error)
}

// A LockedError says that another run is in progress.
type LockedError struct {
	Holder string
	Since  time.Time // when it took the lock
	Lock   string    // the object, for people
}

// Error names the holder of the lock, and when it took it.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s has been running since %s (%s); nothing was done",
		e.Holder, e.Since.UTC().Format(time.RFC3339), e.Lock)
}

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

// Denied says for which backends the run may not release, such as because its account lacks a
// right. The zero Denied denies nothing.
type Denied struct {
	All      error            // why nothing may be released
	Backends map[string]error // by name
}

// of returns why nothing of a backend can be released; nil if it can.
func (d Denied) of(backend string) error { return cmp.Or(d.All, d.Backends[backend]) }
