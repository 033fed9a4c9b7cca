package ipam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// MaxBatch is the most warrants that one call of Backend.Release gets, and the most records that
// one call of Backend.Restore gets. It keeps the second look fresh until the write, and keeps a
// JSON patch with two operations per allocation far below the 10,000 that an API server accepts
// (maxJSONPatchOperations in k8s.io/apiserver). A crash can cut short the releases of two calls.
const MaxBatch = 500

// A Backend is a store of allocations.
//
// Its methods are called from several goroutines. No pool is in two calls of Release at the
// same time. There are only five optional companions: Mender, Surveyor, Endpointer,
// Locator and Attacher.
type Backend interface {
	// Name identifies the backend in policies, logs and reports.
	Name() string

	// List yields every pool with every allocation, including those that it cannot
	// attribute to an owner. For a pool that cannot be read, it yields a *PoolError
	// and goes on with the next pool. For any other object that cannot be decoded,
	// or a pool that is too large to list, it yields an *ObjectError, and if such objects
	// protect addresses, it protects everything that this one may name; the run warns about it. Any other
	// error ends the listing and means that it is incomplete.
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
	//   ErrBegun      with ErrAgain: a first write of several may have been carried out
	//   ErrUnfinished the store no longer holds the allocation, but a later run, or
	//                 the operator, must remove what is left of it
	//   ErrDeleting   the store deletes the allocation once others let it, and holds
	//                 it until then
	//
	// An error may wrap one of them. Every other error is final for this run. If ctx ended, an ErrAgain
	// with its error, without ErrLost and ErrBegun, says that nothing was written.
	//
	// Release changes only what a warrant names. It keeps data that it does not
	// understand byte for byte. It writes nothing under a cancelled context.
	Release(ctx context.Context, ws []Warrant) []error

	// Restore puts back the records of one pool whose places are still free, with
	// as few writes as the store allows. Each write fails if another client wrote
	// since the read. Restore refuses a record that Record cannot have returned, and
	// one that is not InUse and whose address the last List knew to be for no pod. It
	// changes nothing else. Right before each write, also after a wait, it asks the
	// permit, and writes nothing that this refuses; but what it has begun for a record, it
	// completes. So under a permit that refuses every write, it says what is in the
	// places. It returns one error for each record, in the same order:
	//
	//   nil         the store holds it again
	//   ErrPresent  the store held it already, as it was
	//   ErrTaken    its place has another owner, whom the error names, or is gone
	//   ErrAgain    nothing was decided: try again
	//   ErrLost     with ErrAgain: it may have been put back
	//   the error of the permit: its place is free
	//
	// An error may wrap one of them, or be another one.
	Restore(ctx context.Context, pool string, rs []Record, permit Permit) []error
}

// A Permit says why a restore may not write now; nil if it may. It asks no server, and is safe for
// concurrent use.
type Permit func() error

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

// An Endpointer is a Backend whose store has an Endpoint for a pod beside its allocations, which may
// outlive both and then counts for the next pod that gets the address.
type Endpointer interface {
	Backend

	// Endpoints reads, by name, the endpoint of the pod of each allocation on the node of the
	// allocation, in the same order. Each has its own error.
	Endpoints(ctx context.Context, as []*Allocation) []Endpoint
}

// A Locator is a Backend whose store may be in one of several places.
type Locator interface {
	Backend

	// Locate returns the store. Where and Outside do not change.
	Locate() Store
}

// An Attacher is a Backend on a node that reads what libcni remembers of sandboxes, whichever store their
// addresses are in.
type Attacher interface {
	Backend

	// Attachments returns the attachments of these sandboxes, and has one for each entry that cannot be
	// decoded. It is complete or an error. The error wraps ErrNotInstalled if libcni keeps nothing here.
	Attachments(ctx context.Context, sandboxes []string) ([]Attachment, error)
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

// The longest time between the second look at an owner and the write.
const (
	// Freshness is for an allocation that a later sandbox may adopt.
	Freshness = 2 * time.Second

	// FreshnessNeverAdopted is for an allocation that is NeverAdopted. Whatever its pod does
	// meanwhile, the pod gets another allocation; the token tells the two apart. It is less
	// than the 30 s after which another run gets a lock that is not renewed.
	FreshnessNeverAdopted = 20 * time.Second
)

// Freshness returns how old the second look may be when the allocation is released.
func (a *Allocation) Freshness() time.Duration {
	if a.NeverAdopted() {
		return FreshnessNeverAdopted
	}
	return Freshness
}

// A Warrant is the permission to release one allocation. It expires, by the monotonic or by the
// wall clock: see Freshness. The zero Warrant permits nothing.
type Warrant struct {
	allocation *Allocation
	looked     time.Time
	by         Renewer
}

// A Renewer has given warrants, and can look at their owners again.
type Renewer interface {
	// Renew looks again at the owners of warrants that it gave: see the function Renew.
	Renew(ctx context.Context, ws []Warrant) ([]Warrant, []error)

	// Halted returns a *HaltedError if no warrant that it gave permits anything now. It asks no server.
	Halted() error
}

// NewWarrant returns a warrant based on a look at the allocation's owner that began at the given
// time. Only the second look of a run may call it: a test of the imports proves that.
func NewWarrant(a *Allocation, looked time.Time, by Renewer) Warrant { return Warrant{a, looked, by} }

// Allocation returns the allocation that may be released, as it was listed. A backend
// calls it right before the write. The error wraps ErrNoWarrant for the zero Warrant,
// and ErrAgain if the warrant has expired: then it is an *ExpiredError, or a *HaltedError if the run
// may release nothing now.
func (w Warrant) Allocation() (Allocation, error) {
	if w.allocation == nil || w.looked.IsZero() {
		return Allocation{}, ErrNoWarrant
	}
	if age := AgeOf(w.looked, time.Now()); age > w.allocation.Freshness() {
		return Allocation{}, &ExpiredError{age.Round(time.Millisecond)}
	}
	if w.by != nil {
		if err := w.by.Halted(); err != nil {
			return Allocation{}, err
		}
	}
	return *w.allocation, nil
}

// For returns the allocation of the warrant, even after it has expired; nil for the zero
// Warrant. It is not a permission.
func (w Warrant) For() *Allocation { return w.allocation }

// FirstToExpire returns when the first of some valid warrants expires.
func FirstToExpire(ws []Warrant) time.Time {
	var first time.Time
	for _, w := range ws {
		if end := w.looked.Add(w.allocation.Freshness()); first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first
}

// AgeOf returns how old a look is, by the clock that ran further. The monotonic clock, which
// Sub reads, stops while the machine sleeps (golang/go issue 24595), and the wall clock may be
// set back.
func AgeOf(looked, now time.Time) time.Duration {
	return max(now.Sub(looked), now.Round(0).Sub(looked.Round(0)))
}

// An ExpiredError says how old a warrant is. It wraps ErrAgain.
type ExpiredError struct{ Age time.Duration }

// Error names the age.
func (e *ExpiredError) Error() string {
	return fmt.Sprintf("%v: the second look was %v ago", ErrAgain, e.Age)
}

// Unwrap returns ErrAgain.
func (e *ExpiredError) Unwrap() error { return ErrAgain }

// A HaltedError says why a run may begin no release now, whatever the allocation. It wraps ErrAgain and
// the cause.
type HaltedError struct {
	Err error
	End bool // for the rest of the run; otherwise it may go on later
}

// Error returns the text of the cause.
func (e *HaltedError) Error() string { return e.Err.Error() }

// Unwrap returns ErrAgain and the cause.
func (e *HaltedError) Unwrap() []error { return []error{ErrAgain, e.Err} }

// Renew looks at the owners of all warrants again, in one look that begins after the
// call. It returns a fresh warrant or an error for each, in the same order. It is for stores
// whose release takes several writes. Its errors are those of the second look: they wrap
// ErrReturned, ErrKept or ErrAgain, or none of them if no later look can succeed. The error
// of the zero Warrant wraps ErrNoWarrant.
func Renew(ctx context.Context, ws []Warrant) ([]Warrant, []error) {
	fresh, errs := make([]Warrant, len(ws)), make([]error, len(ws))
	given := make(map[Renewer][]int)
	for i, w := range ws {
		if w.looked.IsZero() {
			errs[i] = ErrNoWarrant
			continue
		}
		given[w.by] = append(given[w.by], i)
	}
	for by, indices := range given {
		theirs := make([]Warrant, len(indices))
		for n, i := range indices {
			theirs[n] = ws[i]
		}
		renewed, answers := by.Renew(ctx, theirs)
		for n, i := range indices {
			fresh[i], errs[i] = renewed[n], answers[n]
		}
	}
	return fresh, errs
}

// turnKey marks a context of Unqueued, Polite or SendBy.
type turnKey struct{}

// A Turn says how long a request may queue for a free slot. The zero value waits as long as its
// context.
type Turn struct {
	Unqueued bool      // it does not wait at all
	Polite   bool      // with Unqueued: it fails while the API server asks its clients to wait
	SendBy   time.Time // it is given up unless it is sent by then; zero: never

	Halted func() error // it is given up if this returns an error once it has waited; may be nil
}

// Unqueued returns a context whose requests do not wait for their turn. It is for the lock, and
// for looks and writes that would be too old after Freshness.
func Unqueued(ctx context.Context) context.Context {
	return context.WithValue(ctx, turnKey{}, Turn{Unqueued: true})
}

// Polite returns a context of Unqueued whose requests fail while the API server asks its clients
// to wait. The error is a *RetryAfterError. It is for looks that would be too old after the wait.
func Polite(ctx context.Context) context.Context {
	return context.WithValue(ctx, turnKey{}, Turn{Unqueued: true, Polite: true})
}

// SendBy returns a context whose requests are sent before a time, or not at all, because
// afterwards no warrant permits them, and not while halted, which may be nil, returns an error. With
// the zero time, they wait as long as the context.
func SendBy(ctx context.Context, at time.Time, halted func() error) context.Context {
	return context.WithValue(ctx, turnKey{}, Turn{SendBy: at, Halted: halted})
}

// TurnOf returns the turn of a context.
func TurnOf(ctx context.Context) Turn {
	turn, _ := ctx.Value(turnKey{}).(Turn)
	return turn
}

// ErrNoAnswer says that a backend broke its contract.
var ErrNoAnswer = errors.New("the backend did not answer for every allocation")

// EachPool is Backend.Release for a store that writes each pool separately. It passes the warrants
// of each pool to release, in the order of the pools' first warrants, and as many pools at a time
// as there is room for. All calls of Release share the room; a pool takes up as much of it as
// takes says, at least 1. EachPool itself answers for a warrant that is not valid, and release
// must check the others again right before the write: the pool may have waited.
func EachPool(ctx context.Context, ws []Warrant, room *semaphore.Weighted, takes func(pool string) int64, release func(pool string, ws []Warrant) []error) []error {
	errs := make([]error, len(ws))
	poolOf := make([]string, len(ws))
	var valid []int
	for i, w := range ws {
		a, err := w.Allocation()
		if poolOf[i], errs[i] = a.Pool, err; err == nil {
			valid = append(valid, i)
		}
	}
	var pools sync.WaitGroup
	for _, indices := range ByPool(valid, func(i int) string { return poolOf[i] }) {
		pool, of := poolOf[indices[0]], make([]Warrant, len(indices))
		for n, i := range indices {
			of[n] = ws[i]
		}
		wide := max(1, takes(pool))
		if err := room.Acquire(ctx, wide); err != nil {
			for _, i := range indices {
				errs[i] = fmt.Errorf("%w: %w", ErrAgain, err)
			}
			continue
		}
		pools.Go(func() {
			defer room.Release(wide)
			answers := release(pool, of)
			for n, i := range indices {
				errs[i] = ErrNoAnswer
				if n < len(answers) {
					errs[i] = answers[n]
				}
			}
		})
	}
	pools.Wait()
	return errs
}

// ByPool groups items by pool. The pools are in the order of their first item, and the items of
// each pool stay in their order.
func ByPool[T any](items []T, poolOf func(T) string) [][]T {
	var pools [][]T
	place := make(map[string]int)
	for _, item := range items {
		pool := poolOf(item)
		at, known := place[pool]
		if !known {
			at = len(pools)
			place[pool] = at
			pools = append(pools, nil)
		}
		pools[at] = append(pools[at], item)
	}
	return pools
}
