// Package calico is the backend for Calico's IPAM, in either of its datastores:
// the Kubernetes API or Calico's own etcd.
//
// Calico allocates addresses in blocks. A handle counts, by block, the addresses
// of one sandbox. The backend edits blocks and handles as they are stored, so
// that fields that this program does not know keep their bytes. It never deletes
// a block or an affinity: Calico does that.
package calico

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Name is the name of the backend.
const Name = "calico"

// emptyHandles is the name of the pool that lists the handles without an address.
const emptyHandles = "handles"

// Backend is the backend for Calico's IPAM. The token of an allocation is a hash of its sequence
// number and its stored attribute. A Backend is safe for concurrent use.
type Backend struct {
	open  func(ctx context.Context) (datastore, error)
	place ipam.Store // without its ID

	room *semaphore.Weighted // each block that is being released takes one

	mu       sync.Mutex
	store    datastore
	guid     string         // of the last listing
	reserved ipReservations // of the last listing
	nodes    storeNodes     // of the last listing
	shares   shares         // of the last listing, without what nodes own
	known    handleCache
}

// newBackend returns a backend over a datastore that is opened when first needed. It releases at
// most atOnce blocks at the same time.
func newBackend(atOnce int, open func(ctx context.Context) (datastore, error)) *Backend {
	return &Backend{open: open, room: semaphore.NewWeighted(int64(atOnce))}
}

// Name implements ipam.Backend.
func (*Backend) Name() string { return Name }

// Locate implements ipam.Locator. Calico gives each datastore a GUID when it begins to use it.
func (b *Backend) Locate() ipam.Store {
	b.mu.Lock()
	defer b.mu.Unlock()
	store := b.place
	store.ID = b.guid
	return store
}

// lastListed returns the IPReservations, Calico's own nodes and its settings of the last listing.
func (b *Backend) lastListed() (ipReservations, storeNodes, shares) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reserved, b.nodes, b.shares
}

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
