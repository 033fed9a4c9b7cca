package calico

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

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
		l.pools(yield)
	}
}

// read lists the datastore. It asks whether the datastore is in use while it lists the handles: what
// is listed of a datastore that is locked does not change, and the blocks are listed after the answer.
func (b *Backend) read(ctx context.Context) (*listing, error) {
	store, err := b.datastore(ctx)
	if err != nil {
		return nil, err
	}
	var guid string
	var notReady error
	var ready sync.WaitGroup
	ready.Go(func() { guid, notReady = store.ready(ctx) })
	l := newListing()
	l.name = store.name
	listedHandles, err := store.list(ctx, handles, reduceHandle)
	ready.Wait()
	switch {
	case notReady != nil:
		return nil, notReady
	case err != nil:
		return nil, fmt.Errorf("list handles: %w", err)
	}
	l.take(listedHandles)
	listedBlocks, err := store.list(ctx, blocks, reduceBlock)
	if err != nil {
		return nil, fmt.Errorf("list blocks: %w", err)
	}
	l.take(listedBlocks)
	nodes, err := store.nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("list Calico's nodes: %w", err)
	}
	l.takeNodes(nodes)
	if l.reserved, err = ipReservations(ctx, store); err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.reserved, b.nodes = l.reserved, l.nodes
	b.guid = guid
	b.mu.Unlock()
	return l, nil
}
