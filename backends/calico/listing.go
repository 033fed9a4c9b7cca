package calico

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A listing is the content of a datastore, decoded as far as possible.
type listing struct {
	blocks   []*listedBlock
	handles  []*listedHandle
	broken   []*reaper.PoolError // the blocks and handles that could not be decoded
	nodes    map[string]string   // Kubernetes names, by Calico's names
	reserved []ipReservation
	networks map[string]bool          // the names of networks with which handles begin
	readable map[netip.Prefix]bool    // the blocks that could be decoded
	byID     map[string]*listedHandle // the handles, by ID

	texts map[string]string               // for intern
	alone map[netip.Prefix][]netip.Prefix // for one
}

// newListing returns a listing that takes first the handles of a datastore, and then the
// blocks.
func newListing() *listing {
	return &listing{
		networks: make(map[string]bool),
		readable: make(map[netip.Prefix]bool),
		byID:     make(map[string]*listedHandle),
		texts:    make(map[string]string),
		alone:    make(map[netip.Prefix][]netip.Prefix),
	}
}

// take adds what reduceHandle and reduceBlock returned.
func (l *listing) take(reduced []any) {
	for _, r := range reduced {
		switch r := r.(type) {
		case *reaper.PoolError:
			l.broken = append(l.broken, r)
		case *listedHandle:
			l.handles = append(l.handles, r)
			l.byID[r.id] = r
			l.learnNetwork(r.id)
		case *listedBlock:
			l.blocks = append(l.blocks, r)
			l.readable[r.Range] = true
			for _, id := range r.handles {
				l.learnNetwork(id)
				if h := l.byID[id]; h != nil {
					h.used = true
				}
			}
		}
	}
}

// refuseMisplaced drops the blocks that are stored under the name of another block,
// and reports them as broken. A release would look for their allocations in the
// block that has the name.
func (l *listing) refuseMisplaced() {
	l.blocks = slices.DeleteFunc(l.blocks, func(b *listedBlock) bool {
		if b.misnamed {
			l.broken = append(l.broken, &reaper.PoolError{Pool: "block " + b.name, Err: fmt.Errorf("its cidr is %s, which is not the block of that name", b.Range)})
		}
		return b.misnamed
	})
	clear(l.readable)
	for _, b := range l.blocks {
		l.readable[b.Range] = true
	}
}

// learnNetwork notes the network's name in a handle <network>.<sandbox>.
func (l *listing) learnNetwork(id string) {
	if network, _, ok := splitHandle(id); ok {
		l.networks[network] = true
	}
}

// finish adds to the allocations of a block what the whole listing tells of them, and
// returns the pool of the engine.
func (l *listing) finish(b *listedBlock) reaper.Pool {
	for _, i := range b.bare {
		a := &b.Allocations[i]
		a.Owner.Pod, a.Owner.Sandbox = inferOwner(a.Group, l.networks)
		a.Inferred = a.Owner.Pod != reaper.PodRef{}
	}
	for i := range b.Allocations {
		a := &b.Allocations[i]
		if node, ok := l.nodes[a.Owner.Node]; ok {
			a.Owner.Node = node
		}
		if a.Unreadable == "" {
			a.Unreadable = l.unreadableReason(a.Group)
		}
		a.Protected = l.protection(a.IP)
	}
	if len(b.Allocations) > 0 {
		b.Protected = l.wholeProtection(b)
	}
	return b.Pool
}

// errors returns an error for each object that could not be decoded.
func (l *listing) errors() []error {
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
func (l *listing) unreadableReason(id string) string {
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
func (l *listing) missing(id string) (netip.Prefix, bool) {
	var first netip.Prefix
	h := l.byID[id]
	if h == nil {
		return first, false
	}
	for _, cidr := range h.blocks {
		if !l.readable[cidr] && (!first.IsValid() || cidr.Addr().Less(first.Addr())) {
			first = cidr
		}
	}
	return first, first.IsValid()
}

// emptyHandles returns the pool of the handles without an address. An interrupted
// ADD or DEL leaves such a handle. An ADD that is under way has one, too: it writes the
// handle, and so its version, before the block.
func (l *listing) emptyHandles() reaper.Pool {
	u := reaper.Pool{Name: emptyHandles}
	for _, h := range l.handles {
		if l.byID[h.id].used || h.deleted {
			continue
		}
		r := reaper.Allocation{
			Key: h.id, Token: h.token, Created: h.created, EmptyHandle: true, NeverAdopted: true,
			Foreign: foreignHandle(h.id), Unreadable: l.unreadableReason(h.id),
		}
		r.Owner.Pod, r.Owner.Sandbox = inferOwner(h.id, l.networks)
		r.Inferred = r.Owner.Pod != reaper.PodRef{}
		u.Allocations = append(u.Allocations, r)
	}
	return u
}
