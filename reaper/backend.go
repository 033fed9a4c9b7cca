package reaper

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
)

// MaxBatch is the most warrants that one call of Backend.Release gets. It
// keeps the confirmation fresh until the write, and a JSON patch of two
// operations an entry far below the 10,000 that an API server accepts
// (maxJSONPatchOperations in k8s.io/apiserver).
const MaxBatch = 1000

// A Backend is a store of allocations.
//
// Methods are called from several goroutines, Release never twice at the same
// time for one pool.
type Backend interface {
	// Name identifies the backend in policies, logs and reports.
	Name() string

	// List yields every pool with every entry, those that it cannot attribute
	// included. A pool that cannot be read is yielded as a *PoolError and
	// hides no other. Any other error means that the listing is incomplete,
	// and ends it; ErrNotInstalled says that there is no such store here.
	List(ctx context.Context) iter.Seq2[Pool, error]

	// Release gives back the entries that the warrants name, all of one pool
	// and at most MaxBatch, with as few writes as the store allows. It answers
	// for each warrant, in the same order:
	//
	//   nil           the store does not hold the entry any more, also when
	//                 somebody else removed it
	//   ErrChanged    the entry is no longer what was listed, and stays
	//   ErrReturned   the owner came back in the midst of it, and has it
	//   ErrKept       the backend keeps it for a reason of its own
	//   ErrNoWarrant  the warrant is not valid
	//   ErrAgain      nothing was decided: try again with fresh warrants
	//   ErrUnfinished the store does not hold the entry any more, but something
	//                 of it is left that a later run has to clean up
	//
	// or any error that wraps one of them; every other error is final for this
	// run. It changes nothing that no warrant names, keeps byte for byte what
	// it does not understand, and writes nothing under a cancelled context.
	Release(ctx context.Context, pool string, ws []Warrant) []error
}

// A Mender is a Backend whose release takes several writes, so that a crash
// can leave one half done (Allocation.Interrupted).
type Mender interface {
	Backend

	// Mend gives an entry whose release is half done back to the owner it
	// had. It answers nil when the entry is whole or gone.
	Mend(ctx context.Context, r Allocation) error
}

// A Recorder is a Backend whose releases can be undone. What a backend that is
// none lists is never released.
type Recorder interface {
	Backend

	// Record returns what Restore needs of each allocation, in the same order:
	// the entry as the store has it, whole. It is called before anything is
	// released, and only reads. An entry that is gone, or is not what was listed,
	// has nil instead.
	Record(ctx context.Context, rs []Allocation) ([]json.RawMessage, error)

	// Restore puts back the entries of one pool where their place is still free,
	// with as few writes as the store allows, each on the condition that nobody
	// else wrote meanwhile. It refuses what Record cannot have returned, and
	// changes nothing else. It answers for each record, in the same order:
	//
	//   nil         it is back
	//   ErrPresent  it is there already, as it was
	//   ErrTaken    its place was given to somebody else, or is gone; with whom
	//
	// or any error that wraps one of them, or another one.
	Restore(ctx context.Context, pool string, rs []Record) []error
}

// A Protector is a Backend whose allocations protect those of other backends
// (Allocation.Protects). While it cannot be listed, no allocation is released: any
// of them may be protected. A Protector releases after the backends that it
// protects, so it comes after them in every list.
type Protector interface {
	Backend

	// ProtectsOthers marks the backend and does nothing.
	ProtectsOthers()
}

// What Release, List and Restore answer with; see there.
var (
	ErrNotInstalled = errors.New("the store is not installed in this cluster")
	ErrChanged      = errors.New("the entry changed hands")
	ErrReturned     = errors.New("the owner came back")
	ErrKept         = errors.New("kept")
	ErrNoWarrant    = errors.New("no valid warrant")
	ErrAgain        = errors.New("not decided")
	ErrUnfinished   = errors.New("released, but something of it is left")
	ErrPresent      = errors.New("it is there already")
	ErrTaken        = errors.New("its place is taken")
)

// A PoolError is a pool that could not be read. It hides no other pool.
type PoolError struct {
	Pool string
	Err  error
}

// Error names the pool and what is wrong with it.
func (e *PoolError) Error() string { return e.Pool + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *PoolError) Unwrap() error { return e.Err }
