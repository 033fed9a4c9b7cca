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
	"math/big"
	"net/netip"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Name is the name of the backend.
const Name = "calico"

// leftovers is the unit of the handles without an address.
const leftovers = "handles"

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

	// get reads a block by its CIDR, or a handle by its ID. It returns errGone
	// where the datastore says that it has no such object.
	get(ctx context.Context, k kind, id string) (object, error)

	// write replaces or deletes all the objects or none, each in the version that
	// it was read in, and returns what they are then. It returns errConflict
	// where one is of another version, or gone.
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
// reaper.Backend.
type Backend struct {
	open func(ctx context.Context) (datastore, error)

	mu    sync.Mutex
	store datastore
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
func (b *Backend) List(ctx context.Context) iter.Seq2[reaper.Unit, error] {
	return func(yield func(reaper.Unit, error) bool) {
		l, err := b.read(ctx)
		if err != nil {
			yield(reaper.Unit{}, err)
			return
		}
		for _, err := range l.broken {
			if !yield(reaper.Unit{}, err) {
				return
			}
		}
		for _, block := range l.blocks {
			if !yield(l.unit(block), nil) {
				return
			}
		}
		if left := l.leftovers(); len(left.Reservations) > 0 {
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
	l := newListing(storedBlocks, storedHandles, nodes)
	l.refuseMisplaced()
	b.known.fill(l.handles)
	return l, nil
}

// A listing is what a datastore holds, understood as far as it can be.
type listing struct {
	blocks   []block
	handles  []handle
	broken   []*reaper.UnitError
	nodes    map[string]string
	networks map[string]bool       // that handles begin with
	readable map[netip.Prefix]bool // the blocks
	byID     map[string]handle     // the handles
	used     map[string]bool       // the handles that have addresses
}

func newListing(storedBlocks, storedHandles []object, nodes map[string]string) listing {
	l := listing{
		nodes:    nodes,
		networks: make(map[string]bool),
		readable: make(map[netip.Prefix]bool, len(storedBlocks)),
		byID:     make(map[string]handle, len(storedHandles)),
		used:     make(map[string]bool, len(storedHandles)),
	}
	for _, o := range storedHandles {
		h, err := readHandle(o)
		if err != nil {
			l.broken = append(l.broken, &reaper.UnitError{Unit: "handle " + o.name, Err: err})
			continue
		}
		l.handles = append(l.handles, h)
		l.byID[h.id] = h
		l.sawHandle(h.id)
	}
	for _, o := range storedBlocks {
		b, err := readBlock(o)
		if err != nil {
			l.broken = append(l.broken, &reaper.UnitError{Unit: "block " + o.name, Err: err})
			continue
		}
		l.blocks = append(l.blocks, b)
		l.readable[b.cidr] = true
		for _, a := range b.readable {
			l.sawHandle(a.handle())
			l.used[a.handle()] = true
		}
	}
	return l
}

// refuseMisplaced leaves out the blocks that stand under the name of another: what
// is released of them would be looked for there.
func (l *listing) refuseMisplaced() {
	all := l.blocks
	l.blocks = nil
	clear(l.readable)
	for _, b := range all {
		name := resourceName(blocks, b.cidr.String())
		if b.root == "" {
			name = etcdKey(blocks, b.cidr.String())
		}
		if b.name != name {
			l.broken = append(l.broken, &reaper.UnitError{Unit: "block " + b.name, Err: fmt.Errorf("it says that it is %s", b.cidr)})
			continue
		}
		l.blocks = append(l.blocks, b)
		l.readable[b.cidr] = true
	}
}

// sawHandle learns the names of networks.
func (l *listing) sawHandle(id string) {
	if network, _, ok := splitHandle(id); ok {
		l.networks[network] = true
	}
}

// unit is a block as the engine sees it.
func (l listing) unit(b block) reaper.Unit {
	u := reaper.Unit{
		Name:     b.cidr.String(),
		Range:    b.cidr,
		Capacity: big.NewInt(int64(len(b.allocations))),
	}
	for ordinal, index := range b.allocations {
		if index == nil {
			continue
		}
		r := b.reservation(ordinal, l.networks)
		if node, ok := l.nodes[r.Owner.Node]; ok {
			r.Owner.Node = node
		}
		if r.Unreadable == "" {
			r.Unreadable = l.doubt(r.Bond)
		}
		u.Reservations = append(u.Reservations, r)
	}
	return u
}

// doubt says why it is not known what a handle has; nothing where it is.
func (l listing) doubt(id string) string {
	if len(l.broken) == 0 || id == "" {
		return ""
	}
	if _, ok := l.byID[id]; !ok {
		return "its handle cannot be read, nor can " + l.broken[0].Unit
	}
	if cidr, ok := l.missing(id); ok {
		return "its sandbox may have an address in block " + cidr.String() + " too, which cannot be read"
	}
	return ""
}

// missing returns the first block that a handle counts addresses in and that
// could not be read.
func (l listing) missing(id string) (netip.Prefix, bool) {
	var first netip.Prefix
	for cidr := range l.byID[id].counts {
		if !l.readable[cidr] && (!first.IsValid() || cidr.Addr().Less(first.Addr())) {
			first = cidr
		}
	}
	return first, first.IsValid()
}

// leftovers are the handles that have no address: something that was cut short
// left them. In the datastore they stand beside those of addresses that are just
// being allocated.
func (l listing) leftovers() reaper.Unit {
	u := reaper.Unit{Name: leftovers}
	for _, h := range l.handles {
		if l.used[h.id] || h.deleted {
			continue
		}
		r := reaper.Reservation{
			Key: h.id, Token: h.token(), Created: h.created, Remnant: true,
			Foreign: foreignHandle(h.id), Unreadable: l.doubt(h.id),
		}
		r.Owner.Pod, r.Owner.Sandbox = guessOwner(h.id, l.networks)
		r.Inferred = r.Owner.Pod != reaper.PodRef{}
		u.Reservations = append(u.Reservations, r)
	}
	return u
}
