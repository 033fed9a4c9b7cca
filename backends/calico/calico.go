// Package calico releases what Calico's IPAM keeps allocated, in either of its
// datastores: the Kubernetes API or an etcd of its own.
//
// Addresses are allocated in blocks; a handle tells in which blocks the addresses
// of one sandbox are. Both are edited as they are stored, so that what this
// program does not know stays as it is. Blocks and affinities are never deleted
// here: that is Calico's business.
package calico

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Name is the name of the backend.
const Name = "calico"

// empty handles is the pool of the handles without an address.
const emptyHandles = "handles"

// A datastore is where Calico keeps its objects. All reads are quorum reads. It
// is safe for concurrent use.
type datastore interface {
	// ready returns an error unless Calico itself would work with the datastore
	// now; reaper.ErrNotInstalled where there is none.
	ready(ctx context.Context) error

	// list returns every object of a kind.
	list(ctx context.Context, k kind) ([]object, error)

	// nodes returns the Kubernetes names of Calico's nodes where they differ.
	nodes(ctx context.Context) (map[string]string, error)

	// allocations returns what is kept from being given away, read now; none
	// where Calico has no such thing.
	allocations(ctx context.Context) ([]ipAllocation, error)

	// name is what the datastore calls a block by its CIDR, or a handle by its ID.
	name(k kind, id string) string

	// anew returns an object that write creates: one that was stored under the
	// name as raw has it.
	anew(k kind, name string, raw []byte) (object, error)

	// get reads a block by its CIDR, or a handle by its ID. It returns errGone
	// where the datastore says that it has no such object.
	get(ctx context.Context, k kind, id string) (object, error)

	// write replaces or deletes all the objects or none, each in the version that
	// it was read in, and creates those that have none. It returns what they are
	// then, and errConflict where one is of another version, gone, or there.
	write(ctx context.Context, objects ...object) ([]object, error)

	// together is how many objects one write can take.
	together() int

	// transient wraps an error in reaper.ErrAgain where a request may do better
	// later.
	transient(err error) error
}

// What datastores answer with.
var (
	errGone     = errors.New("the datastore has no such object")
	errConflict = errors.New("somebody else wrote it")
)

// Backend is the backend for Calico's IPAM. An allocation's token is its
// attribute, as it is stored, and its sequence number. It implements
// reaper.Recorder.
type Backend struct {
	open func(ctx context.Context) (datastore, error)

	mu    sync.Mutex
	store datastore
	sizes map[kind]int // how many objects the last listing had
	known register
}

// Name implements reaper.Backend.
func (*Backend) Name() string { return Name }

// datastore returns the datastore, found at the first call.
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

// List implements reaper.Backend. Handles are read before blocks, as Calico
// writes them in that order: a handle whose addresses are missing then is not one
// whose addresses were just being allocated, but for the time of one request.
func (b *Backend) List(ctx context.Context) iter.Seq2[reaper.Pool, error] {
	return func(yield func(reaper.Pool, error) bool) {
		l, err := b.read(ctx)
		if err != nil {
			yield(reaper.Pool{}, err)
			return
		}
		for _, err := range l.broken {
			if !yield(reaper.Pool{}, err) {
				return
			}
		}
		for _, block := range l.blocks {
			if !yield(l.pool(block), nil) {
				return
			}
		}
		if left := l.emptyHandles(); len(left.Allocations) > 0 {
			yield(left, nil)
		}
	}
}

// read lists the datastore, and remembers the handles.
func (b *Backend) read(ctx context.Context) (listing, error) {
	store, err := b.datastore(ctx)
	if err != nil {
		return listing{}, err
	}
	if err := store.ready(ctx); err != nil {
		return listing{}, err
	}
	storedHandles, err := store.list(ctx, handles)
	if err != nil {
		return listing{}, fmt.Errorf("list handles: %w", err)
	}
	storedBlocks, err := store.list(ctx, blocks)
	if err != nil {
		return listing{}, fmt.Errorf("list blocks: %w", err)
	}
	nodes, err := store.nodes(ctx)
	if err != nil {
		return listing{}, fmt.Errorf("list Calico's nodes: %w", err)
	}
	reserved, err := store.allocations(ctx)
	if err != nil {
		return listing{}, fmt.Errorf("list Calico's IPReservations, which keep addresses back: %w", err)
	}
	l := newListing(storedBlocks, storedHandles, nodes)
	l.reserved = reserved
	l.refuseMisplaced()
	b.known.fill(l.handles)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sizes = map[kind]int{blocks: len(storedBlocks), handles: len(storedHandles)}
	return l, nil
}
