package ipam

import (
	"context"
	"encoding/json"
	"iter"
)

// MaxBatch is the most warrants that one call of Backend.Release gets, and the most records that
// one call of Backend.Restore gets. It keeps the second look fresh until the write, and keeps a
// JSON patch with two operations per allocation far below the 10,000 that an API server accepts
// (maxJSONPatchOperations in k8s.io/apiserver). A crash can cut short the releases of two calls.
const MaxBatch = 500

// A Backend is a store of allocations.
//
// Its methods are called from several goroutines. No pool is in two calls of Release at the
// same time. There are only three optional companions: Mender, Surveyor and Locator.
type Backend interface {
	// Name identifies the backend in policies, logs and reports.
	Name() string

	// List yields every pool with every allocation, including those that it cannot
	// attribute to an owner. For a pool that cannot be read, it yields a *PoolError
	// and goes on with the next pool. For any other object that cannot be decoded,
	// it yields an *ObjectError and protects everything that the object may name;
	// the run warns about it. Any other error ends the listing and means that it is
	// incomplete.
	// ErrNotInstalled says that the cluster, or the node, has no such store.
	List(ctx context.Context) iter.Seq2[Pool, error]

	// Record returns the data that Restore needs for each allocation, in the same
	// order: everything that the store has of it. It is called before the first
	// release, and only reads. The data is nil for an allocation that is gone or is
	// not what was listed.
	Record(ctx context.Context, as []Allocation) ([]json.RawMessage, error)

	// Release removes the allocations that the warrants name from the store, with
	// as few writes as the store allows. They may be of any pools, and there are at
	// most MaxBatch. It returns one error for each warrant, in the same order:
	//
	//   nil           the store no longer holds the allocation, even if another
	//                 client removed it
	//   ErrChanged    the allocation is no longer what was listed, and stays
	//   ErrReturned   the owner came back during the release, and has it
	//   ErrKept       the backend keeps it for a reason of its own
	//   ErrNoWarrant  the warrant is not valid
	//   ErrAgain      nothing was decided: try again with fresh warrants
	//   ErrLost       with ErrAgain: the release may have been carried out
	//   ErrUnfinished the store no longer holds the allocation, but a later run, or
	//                 the operator, must remove what is left of it
	//   ErrDeleting   the store deletes the allocation once others let it, and holds
	//                 it until then
	//
	// An error may wrap one of them. Every other error is final for this run.
	//
	// Release changes only what a warrant names. It keeps data that it does not
	// understand byte for byte. It writes nothing under a cancelled context.
	Release(ctx context.Context, ws []Warrant) []error

	// Compare says what Restore would find for the records of one pool, and only reads.
	// It makes the same checks, and returns one error for each record, in the same
	// order:
	//
	//   nil         its place is free, so Restore would try to put it back
	//   ErrPresent  the store holds it, as it was
	//   ErrTaken    its place has another owner, whom the error names, or is gone
	//   ErrAgain    nothing was decided
	//
	// An error may wrap one of them, or be another one.
	Compare(ctx context.Context, pool string, rs []Record) []error

	// Restore puts back the records of one pool whose places are still free, with
	// as few writes as the store allows. Each write fails if another client wrote
	// since the read. Restore refuses a record that Record cannot have returned, and
	// one that is not InUse and whose address the last List knew to be for no pod. It
	// changes nothing else. It returns one error for each record, in the same order:
	//
	//   nil         the store holds it again
	//   ErrPresent  the store held it already, as it was
	//   ErrTaken    its place has another owner, whom the error names, or is gone
	//   ErrAgain    nothing was decided: try again
	//   ErrLost     with ErrAgain: it may have been put back
	//
	// An error may wrap one of them, or be another one.
	Restore(ctx context.Context, pool string, rs []Record) []error
}

// A Mender is a Backend whose release takes several writes, so a crash can cut it
// short (Allocation.Interrupted).
type Mender interface {
	Backend

	// Mend gives an allocation whose release was cut short back to its previous
	// owner. It returns nil if the allocation is whole or gone.
	Mend(ctx context.Context, a Allocation) error
}

// A Surveyor is a Backend that knows which addresses its store can give to pods.
type Surveyor interface {
	Backend

	// Survey returns the networks of the pools, which List just yielded, and the
	// networks that have no pool yet. Each pool is in at most one network. With an
	// error, it still returns the networks that it knows. The error is a warning in the
	// report. No verdict rests on a network.
	Survey(ctx context.Context, pools []Pool) ([]Network, error)
}

// A Locator is a Backend whose store may be in one of several places.
type Locator interface {
	Backend

	// Locate returns the store. Where and Outside do not change.
	Locate() Store
}

// A Store says where a store is, and which one it is.
type Store struct {
	Where string // for the header of a report, such as "etcd https://etcd-1.example.com:2379"; it has no secret

	// Outside is set if the store is outside the API server that the pods are read from. So it may be
	// the store of another cluster, and the backend needs none of its rights in the API server.
	Outside bool

	ID    string // by which a run knows the store again, as the last complete List found it; empty if it has none
	Field string // where the store has the ID, for people
}
