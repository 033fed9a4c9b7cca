package calico

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/big"
	"net/netip"
	"slices"
	"sync"
	"time"

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

// read lists the datastore. It asks whether the datastore is in use, and for the settings, while it
// lists the handles: what is listed of a datastore that is locked does not change, and the blocks are listed after the answer.
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
	ready.Go(func() { l.shares = sharesBy(store.settings(ctx)) })
	if _, l.partial = store.(*files); !l.partial {
		l.name = store.name
	}
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
	if l.noNodes, _ = errors.AsType[*ipam.UnreadError](err); l.noNodes == nil && err != nil {
		return nil, fmt.Errorf("list Calico's nodes: %w", err)
	}
	l.takeNodes(nodes)
	l.reserved = listIPReservations(ctx, store)
	b.mu.Lock()
	b.reserved, b.nodes, b.shares = l.reserved, l.nodes, l.shares
	b.guid = guid
	b.mu.Unlock()
	return l, nil
}

// A listing is the content of a datastore, decoded as far as possible.
type listing struct {
	blocks   []*listedBlock
	handles  []*listedHandle
	broken   []*ipam.PoolError // the blocks and handles that could not be decoded
	large    []largeBlock
	nodes    storeNodes
	noNodes  *ipam.UnreadError     // of files: any address may be that of another cluster; nil if they are known
	tunnels  map[netip.Addr]string // the nodes, by the addresses of their tunnels
	reserved ipReservations
	shares   shares
	readable map[netip.Prefix]bool    // the blocks that could be decoded
	byID     map[string]*listedHandle // the handles, by ID

	// If name is not nil, it returns the name under which a block must be stored. A
	// release would look for its allocations there.
	name func(k kind, id string) string

	// partial is set for files: an object missing from them may exist.
	partial bool
}

// newListing returns an empty listing, which must take handles before blocks.
func newListing() *listing {
	return &listing{
		readable: make(map[netip.Prefix]bool),
		byID:     make(map[string]*listedHandle),
	}
}

// A listedHandle is what a listing keeps of a handle.
type listedHandle struct {
	id, token string
	blocks    []netip.Prefix // in which it counts addresses
	created   time.Time      // zero if the datastore does not record it
	deleted   bool           // Calico has marked the handle and will delete it
	deleting  error          // see object
	used      bool           // it has an address in a block
}

// A listedBlock is what a listing keeps of a block. Its allocations lack what only the whole
// listing shows.
type listedBlock struct {
	ipam.Pool
	name string // of the object
}

// reduceHandle returns a *listedHandle, or a *ipam.PoolError if the object cannot be
// decoded.
func reduceHandle(o object) any {
	h, err := readHandle(o)
	if err != nil {
		return &ipam.PoolError{Pool: "handle " + o.name, Err: err}
	}
	return &listedHandle{
		id: h.id, token: h.token(), created: h.created, deleted: h.deleted, deleting: h.deleting,
		blocks: slices.SortedFunc(maps.Keys(h.counts), netip.Prefix.Compare),
	}
}

// A largeBlock is a block whose size is beyond what the program lists.
type largeBlock struct {
	name string // of the object
	*sizeError
}

// reduceBlock returns a *listedBlock, a largeBlock, or a *ipam.PoolError if the object cannot be
// decoded.
func reduceBlock(o object) any {
	b, err := readBlock(o)
	if large := (*sizeError)(nil); errors.As(err, &large) {
		return largeBlock{o.name, large}
	}
	if err != nil {
		return &ipam.PoolError{Pool: "block " + o.name, Err: err}
	}
	listed := &listedBlock{
		Pool: ipam.Pool{
			Name:        b.cidr.String(),
			Range:       b.cidr,
			Node:        b.node,
			Exclusive:   true,
			Capacity:    big.NewInt(int64(len(b.allocations))),
			Allocations: make([]ipam.Allocation, 0, len(b.allocations)-len(b.unallocated)),
		},
		name: b.name,
	}
	for ordinal, index := range b.allocations {
		if index != nil {
			listed.Allocations = append(listed.Allocations, b.allocation(ordinal))
		}
	}
	return listed
}

// take adds what reduceHandle and reduceBlock returned. A block that is stored under
// the name of another block is broken.
func (l *listing) take(reduced []any) {
	for _, r := range reduced {
		switch r := r.(type) {
		case *ipam.PoolError:
			l.broken = append(l.broken, r)
		case largeBlock:
			if err := l.misnamed(r.cidr, r.name); err != nil {
				l.broken = append(l.broken, err)
				continue
			}
			l.large = append(l.large, r)
		case *listedHandle:
			l.handles = append(l.handles, r)
			l.byID[r.id] = r
		case *listedBlock:
			for _, a := range r.Allocations {
				if h := l.byID[a.Group]; h != nil {
					h.used = true
				}
			}
			if err := l.misnamed(r.Range, r.name); err != nil {
				l.broken = append(l.broken, err)
				continue
			}
			l.blocks = append(l.blocks, r)
			l.readable[r.Range] = true
		}
	}
}

// misnamed returns an error if a block is stored under the name of another one; nil if it is not.
func (l *listing) misnamed(cidr netip.Prefix, name string) *ipam.PoolError {
	if l.name == nil || l.name(blocks, cidr.String()) == name {
		return nil
	}
	return &ipam.PoolError{Pool: "block " + name, Err: fmt.Errorf("its cidr is %s, which is not the block of that name", cidr)}
}

// pools yields the errors and the pools of the whole listing.
func (l *listing) pools(yield func(ipam.Pool, error) bool) {
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

// finish adds what the whole listing says about the allocations of a block, and returns the
// engine's pool. The attribute of one may lack the node. The affinity of the block does not: a pod of
// another node may have the address, so it tells no more than which cluster the block belongs to.
func (l *listing) finish(b *listedBlock) ipam.Pool {
	for i := range b.Allocations {
		a := &b.Allocations[i]
		a.StoreNode = l.nodes[cmp.Or(a.Owner.Node, b.Node)]
		a.Owner.Node = l.nodes.kubernetesName(a.Owner.Node)
		if a.Unreadable == "" {
			a.Unreadable = l.unreadableReason(a.Group)
		}
		if l.noNodes != nil {
			a.Protected = l.noNodes.Protects()
		}
	}
	b.Node, b.Tunnels = l.nodes.kubernetesName(b.Node), l.tunnels
	if b.Rest = l.shares.rest; b.Rest > 0 {
		b.RestBy = l.shares.restBy()
	}
	if l.reserved.lack != nil {
		b.Capacity = nil
	}
	return b.Pool
}

// errors returns an error for each object that could not be read.
func (l *listing) errors() []error {
	all := l.reserved.errors()
	for _, b := range l.large {
		err := fmt.Errorf("%w: what may have an address in it is kept, and how full networks of its IP family are is unknown; correct the blockSize of its IPPool", b.sizeError)
		all = append(all, &ipam.ObjectError{Object: "Calico's block " + b.name, Range: b.cidr, Err: err})
	}
	for _, err := range l.broken {
		all = append(all, err)
	}
	return all
}

// unreadableReason returns why it is unknown which addresses a handle has. It returns an empty
// string if it is known. A handle may count addresses in a block that does not exist; an absent
// block counts only if something is unreadable, or in files. A handle that files lack proves
// nothing.
func (l *listing) unreadableReason(id string) string {
	h := l.byID[id]
	switch {
	case id == "" || !l.partial && len(l.broken)+len(l.large) == 0 || l.partial && h == nil:
		return ""
	case h == nil && len(l.broken) > 0:
		return "its handle could not be found, and " + l.broken[0].Pool + " could not be read"
	case h == nil:
		return "its handle is missing, and it may have an address in block " + l.large[0].cidr.String() + ", which is too large"
	}
	for _, cidr := range h.blocks {
		switch reason := "its sandbox may have another address in block " + cidr.String() + ", which "; {
		case l.readable[cidr]:
		case l.partial:
			return reason + "is not in the files: add it to the dump"
		default:
			return reason + "cannot be read"
		}
	}
	return ""
}

// emptyHandles returns the pool of the handles without an address. An interrupted ADD or DEL leaves
// such a handle. An ADD under way has one too: it writes the handle, and so changes its version,
// before the block.
func (l *listing) emptyHandles() ipam.Pool {
	u := ipam.Pool{Name: emptyHandles}
	for _, h := range l.handles {
		if h.used || h.deleted || l.byID[h.id] != h { // files may have a handle twice
			continue
		}
		r := ipam.Allocation{
			Key: h.id, Token: h.token, Created: h.created, EmptyHandle: true, Adoption: ipam.NeverAdopted,
			Foreign: foreignHandle(h.id), Unreadable: l.unreadableReason(h.id),
		}
		if h.deleting != nil {
			r.Deleting = h.deleting.Error()
		}
		r.Owner.Sandbox = sandboxOf(h.id, ipam.PodRef{})
		u.Allocations = append(u.Allocations, r)
	}
	return u
}
