package reaper

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
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

// A Release is an allocation that a run released, and the object of its pool.
type Release struct {
	Object ipam.Object // zero if the pool has no object
	Entry  report.Entry
}

// An EventRecorder writes the events of a run to the cluster.
type EventRecorder interface {
	// Announce writes the events for the run and for its releases. It returns when
	// all of them are written, or with an error.
	Announce(ctx context.Context, r report.Report, released []Release) error
}

// Denied says for which backends the run's account lacks a right to release. The zero
// Denied denies nothing.
type Denied struct {
	All      error            // a right that every release needs is missing
	Backends map[string]error // by name
}

// of returns why nothing of a backend can be released; nil if it can.
func (d Denied) of(backend string) error { return cmp.Or(d.All, d.Backends[backend]) }
