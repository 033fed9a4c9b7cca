// Package calico is the backend for Calico's IPAM, in either of its datastores: the
// Kubernetes API or an etcd of Calico's own.
//
// Calico allocates addresses in blocks. A handle counts, by block, the addresses of
// one sandbox. The backend edits blocks and handles as they are stored, so that
// fields which this program does not know keep their bytes. It never deletes a
// block or an affinity: Calico does that.
package calico

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Name is the name of the backend.
const Name = "calico"

// emptyHandles is the name of the pool that lists the handles without an address.
const emptyHandles = "handles"

// A datastore is where Calico keeps its objects. All reads are quorum reads. A
// datastore is safe for concurrent use.
type datastore interface {
	// ready returns nil if Calico itself would work with the datastore now. It
	// returns an error that wraps errNotReady if the datastore is locked.
	ready(ctx context.Context) error

	// list reads every object of a kind and returns what reduce makes of each one, in
	// their order. It leaves out those of which reduce makes nil. It holds a page of
	// objects at a time. It calls reduce from one goroutine at a time, and more than
	// once for an object that it has to read again.
	list(ctx context.Context, k kind, reduce func(object) any) ([]any, error)

	// nodes returns the Kubernetes name of each of Calico's nodes, by Calico's
	// name. A node that has the same name in both may be absent.
	nodes(ctx context.Context) (map[string]string, error)

	// resources reads all objects of a resource other than blocks and handles, by its
	// plural name. It returns errUndefined if this version of Calico has no such resource.
	resources(ctx context.Context, plural string) ([]resource, error)

	// name returns the datastore's name of a block, by its CIDR, or of a handle, by
	// its ID.
	name(k kind, id string) string

	// newObject returns an object that write creates. The raw form is the one that
	// was once stored under the name.
	newObject(k kind, name string, raw []byte) (object, error)

	// get reads a block by its CIDR, or a handle by its ID. It returns errGone if
	// the datastore says that it has no such object.
	get(ctx context.Context, k kind, id string) (object, error)

	// write writes all the objects or none. It creates an object without a
	// revision, deletes an object without a raw form, and replaces any other. Each
	// write is conditional on the revision that was read. It returns the objects as
	// they are stored now. It returns errConflict if a stored object has another
	// revision, or exists although it was to be created. It returns errConflict or
	// errGone if a stored object is gone.
	write(ctx context.Context, objects ...object) ([]object, error)

	// objectsPerWrite returns how many objects one write can take.
	objectsPerWrite() int

	// transient wraps an error in ipam.ErrAgain if the same request may succeed
	// later.
	transient(err error) error
}

// A resource is an object that has the same form in every datastore.
type resource struct {
	name string // the end of its key in etcd; empty: it is in the metadata
	data []byte
}

// The errors that a datastore returns.
var (
	errGone     = errors.New("the datastore has no such object")
	errConflict = errors.New("the object changed since it was read")

	errUndefined = errors.New("is not defined")
)

// Backend is the backend for Calico's IPAM. The token of an allocation is a hash of its
// sequence number and its attribute as it is stored. A Backend is safe for concurrent use.
type Backend struct {
	open   func(ctx context.Context) (datastore, error)
	inEtcd bool

	room *semaphore.Weighted // each block that is being released takes one

	mu    sync.Mutex
	store datastore
	sizes map[kind]int // the number of objects in the last listing
	known handleCache
}

// newBackend returns a backend over a datastore that is opened when it is needed.
func newBackend(open func(ctx context.Context) (datastore, error)) *Backend {
	return &Backend{open: open, room: semaphore.NewWeighted(handlesAtOnce)}
}

// Name implements ipam.Backend.
func (*Backend) Name() string { return Name }

// withRoom lets so many blocks be released at the same time, and returns the backend.
func (b *Backend) withRoom(blocks int) *Backend {
	b.room = semaphore.NewWeighted(int64(blocks))
	return b
}

// OutsideAPIServer implements plugin.Outsider.
func (b *Backend) OutsideAPIServer() bool { return b.inEtcd }

// datastore returns the datastore. The first call that succeeds opens it.
func (b *Backend) datastore(ctx context.Context) (datastore, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.store == nil {
		store, err := b.open(ctx)
		if err != nil {
			return nil, err
		}
		b.store = store
	}
	return b.store, nil
}

// List implements ipam.Backend. It reads handles before blocks, because Calico's
// ADD writes a handle before its block. So the handle of an ADD that is under way
// looks empty only if the ADD writes it before the first list and its block after
// the second.
func (b *Backend) List(ctx context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		l, err := b.read(ctx)
		if err != nil {
			yield(ipam.Pool{}, err)
			return
		}
		for _, err := range l.errors() {
			if !yield(ipam.Pool{}, err) {
				return
			}
		}
		for _, block := range l.blocks {
			if !yield(l.finish(block), nil) {
				return
			}
		}
		if left := l.emptyHandles(); len(left.Allocations) > 0 {
			yield(left, nil)
		}
	}
}

// read lists the datastore.
func (b *Backend) read(ctx context.Context) (*listing, error) {
	store, err := b.datastore(ctx)
	if err != nil {
		return nil, err
	}
	if err := store.ready(ctx); err != nil {
		return nil, err
	}
	l := newListing()
	l.name = store.name
	listedHandles, err := store.list(ctx, handles, reduceHandle)
	if err != nil {
		return nil, fmt.Errorf("list handles: %w", err)
	}
	l.take(listedHandles)
	listedBlocks, err := store.list(ctx, blocks, reduceBlock)
	if err != nil {
		return nil, fmt.Errorf("list blocks: %w", err)
	}
	l.take(listedBlocks)
	if l.nodes, err = store.nodes(ctx); err != nil {
		return nil, fmt.Errorf("list Calico's nodes: %w", err)
	}
	if l.reserved, err = ipReservations(ctx, store); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sizes = map[kind]int{blocks: len(listedBlocks), handles: len(listedHandles)}
	return l, nil
}
