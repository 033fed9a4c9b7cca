package calico

import (
	"fmt"
	"math/big"
	"net/netip"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A listing is the content of a datastore, decoded as far as possible.
type listing struct {
	blocks   []block
	handles  []handle
	broken   []*reaper.PoolError // the blocks and handles that could not be decoded
	nodes    map[string]string   // Kubernetes names, by Calico's names
	reserved []ipReservation
	networks map[string]bool       // the names of networks with which handles begin
	readable map[netip.Prefix]bool // the blocks that could be decoded
	byID     map[string]handle     // the handles, by ID
	used     map[string]bool       // the IDs of the handles that have an address in a block
}

// newListing decodes the objects of a datastore.
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
			l.broken = append(l.broken, &reaper.PoolError{Pool: "handle " + o.name, Err: err})
			continue
		}
		l.handles = append(l.handles, h)
		l.byID[h.id] = h
		l.learnNetwork(h.id)
	}
	for _, o := range storedBlocks {
		b, err := readBlock(o)
		if err != nil {
			l.broken = append(l.broken, &reaper.PoolError{Pool: "block " + o.name, Err: err})
			continue
		}
		l.blocks = append(l.blocks, b)
		l.readable[b.cidr] = true
		for _, a := range b.readable {
			l.learnNetwork(a.handle())
			l.used[a.handle()] = true
		}
	}
	return l
}

// refuseMisplaced drops the blocks that are stored under the name of another block,
// and reports them as broken. A release would look for their allocations in the
// block that has the name.
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
			l.broken = append(l.broken, &reaper.PoolError{Pool: "block " + b.name, Err: fmt.Errorf("its cidr is %s, which is not the block of that name", b.cidr)})
			continue
		}
		l.blocks = append(l.blocks, b)
		l.readable[b.cidr] = true
	}
}

// learnNetwork notes the network's name in a handle <network>.<sandbox>.
func (l *listing) learnNetwork(id string) {
	if network, _, ok := splitHandle(id); ok {
		l.networks[network] = true
	}
}

// pool returns a block as a pool of the engine.
func (l listing) pool(b block) reaper.Pool {
	u := reaper.Pool{
		Name:     b.cidr.String(),
		Range:    b.cidr,
		Capacity: big.NewInt(int64(len(b.allocations))),
	}
	if b.version != "" {
		u.Object = reaper.Object{APIVersion: b.version, Kind: "IPAMBlock", Name: b.name, UID: b.uid}
	}
	for ordinal, index := range b.allocations {
		if index == nil {
			continue
		}
		r := b.allocation(ordinal, l.networks)
		if node, ok := l.nodes[r.Owner.Node]; ok {
			r.Owner.Node = node
		}
		if r.Unreadable == "" {
			r.Unreadable = l.unreadableReason(r.Group)
		}
		r.Protected = l.protection(r.IP)
		u.Allocations = append(u.Allocations, r)
	}
	if len(u.Allocations) > 0 {
		u.Protected = l.wholeProtection(b)
	}
	return u
}

// errors returns an error for each object that could not be decoded.
func (l listing) errors() []error {
	var all []error
	for _, r := range l.reserved {
		if r.broken != nil {
			err := fmt.Errorf("%w; correct it, or delete the IPReservation", r.broken)
			all = append(all, &reaper.ObjectError{Object: "Calico's IPReservation " + r.name, Err: err})
		}
	}
	for _, err := range l.broken {
		all = append(all, err)
	}
	return all
}

// unreadableReason returns why it is unknown which addresses a handle has. It
// returns an empty string if it is known.
func (l listing) unreadableReason(id string) string {
	if len(l.broken) == 0 || id == "" {
		return ""
	}
	if _, ok := l.byID[id]; !ok {
		return "its handle is not among the handles that can be read, and this cannot be read: " + l.broken[0].Pool
	}
	if cidr, ok := l.missing(id); ok {
		return "its sandbox may have another address in block " + cidr.String() + ", which cannot be read"
	}
	return ""
}

// missing returns the first block in which the handle counts addresses and which
// could not be read. It reports false if there is none.
func (l listing) missing(id string) (netip.Prefix, bool) {
	var first netip.Prefix
	for cidr := range l.byID[id].counts {
		if !l.readable[cidr] && (!first.IsValid() || cidr.Addr().Less(first.Addr())) {
			first = cidr
		}
	}
	return first, first.IsValid()
}

// emptyHandles returns the pool of the handles without an address. An interrupted
// ADD or DEL leaves such a handle. An ADD that is under way has one, too.
func (l listing) emptyHandles() reaper.Pool {
	u := reaper.Pool{Name: emptyHandles}
	for _, h := range l.handles {
		if l.used[h.id] || h.deleted {
			continue
		}
		r := reaper.Allocation{
			Key: h.id, Token: h.token(), Created: h.created, EmptyHandle: true,
			Foreign: foreignHandle(h.id), Unreadable: l.unreadableReason(h.id),
		}
		r.Owner.Pod, r.Owner.Sandbox = inferOwner(h.id, l.networks)
		r.Inferred = r.Owner.Pod != reaper.PodRef{}
		u.Allocations = append(u.Allocations, r)
	}
	return u
}
