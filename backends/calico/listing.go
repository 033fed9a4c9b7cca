package calico

import (
	"fmt"
	"math/big"
	"net/netip"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A listing is what a datastore holds, understood as far as it can be.
type listing struct {
	blocks   []block
	handles  []handle
	broken   []*reaper.PoolError
	nodes    map[string]string
	reserved []ipAllocation
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
			l.broken = append(l.broken, &reaper.PoolError{Pool: "handle " + o.name, Err: err})
			continue
		}
		l.handles = append(l.handles, h)
		l.byID[h.id] = h
		l.sawHandle(h.id)
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
			l.broken = append(l.broken, &reaper.PoolError{Pool: "block " + b.name, Err: fmt.Errorf("it says that it is %s", b.cidr)})
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

// pool is a block as the engine sees it.
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
			r.Unreadable = l.doubt(r.Group)
		}
		r.Protected = l.protection(r.IP)
		u.Allocations = append(u.Allocations, r)
	}
	return u
}

// doubt says why it is not known what a handle has; nothing where it is.
func (l listing) doubt(id string) string {
	if len(l.broken) == 0 || id == "" {
		return ""
	}
	if _, ok := l.byID[id]; !ok {
		return "its handle cannot be read, nor can " + l.broken[0].Pool
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

// empty handles are the handles that have no address: something that was cut short
// left them. In the datastore they stand beside those of addresses that are just
// being allocated.
func (l listing) emptyHandles() reaper.Pool {
	u := reaper.Pool{Name: emptyHandles}
	for _, h := range l.handles {
		if l.used[h.id] || h.deleted {
			continue
		}
		r := reaper.Allocation{
			Key: h.id, Token: h.token(), Created: h.created, EmptyHandle: true,
			Foreign: foreignHandle(h.id), Unreadable: l.doubt(h.id),
		}
		r.Owner.Pod, r.Owner.Sandbox = guessOwner(h.id, l.networks)
		r.Inferred = r.Owner.Pod != reaper.PodRef{}
		u.Allocations = append(u.Allocations, r)
	}
	return u
}
