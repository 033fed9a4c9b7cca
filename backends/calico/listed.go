package calico

import (
	"math/big"
	"net/netip"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A listedHandle is what a listing keeps of a handle.
type listedHandle struct {
	id, token string
	blocks    []netip.Prefix // in which it counts addresses
	created   time.Time      // zero if the datastore does not say it
	deleted   bool           // Calico has marked the handle and will delete it
	used      bool           // it has an address in a block
}

// A listedBlock is what a listing keeps of a block. Its allocations lack what only the
// whole listing tells.
type listedBlock struct {
	reaper.Pool
	name     string   // of the object
	misnamed bool     // the block is stored under the name of another one
	bare     []int    // the indices of the allocations whose owner is inferred from the handle
	handles  []string // the IDs that its attributes name
}

// reduceHandle returns a *listedHandle, or a *reaper.PoolError if the object cannot be
// decoded.
func (l *listing) reduceHandle(o object) any {
	h, err := readHandle(o)
	if err != nil {
		return &reaper.PoolError{Pool: "handle " + o.name, Err: err}
	}
	listed := &listedHandle{id: h.id, token: h.token(), created: h.created, deleted: h.deleted}
	for cidr := range h.counts {
		listed.blocks = append(listed.blocks, cidr)
	}
	if len(listed.blocks) == 1 {
		listed.blocks = l.one(listed.blocks[0])
	}
	return listed
}

// one returns a slice of one block, the same for all handles of the block.
func (l *listing) one(cidr netip.Prefix) []netip.Prefix {
	if l.alone[cidr] == nil {
		l.alone[cidr] = []netip.Prefix{cidr}
	}
	return l.alone[cidr]
}

// reduceBlock returns a *listedBlock, or a *reaper.PoolError if the object cannot be
// decoded. The handles must have been taken.
func (l *listing) reduceBlock(o object) any {
	b, err := readBlock(o)
	if err != nil {
		return &reaper.PoolError{Pool: "block " + o.name, Err: err}
	}
	name := resourceName(blocks, b.cidr.String())
	if b.root == "" {
		name = etcdKey(blocks, b.cidr.String())
	}
	listed := &listedBlock{
		Pool: reaper.Pool{
			Name:        b.cidr.String(),
			Range:       b.cidr,
			Capacity:    big.NewInt(int64(len(b.allocations))),
			Allocations: make([]reaper.Allocation, 0, len(b.allocations)-len(b.unallocated)),
		},
		name:     b.name,
		misnamed: b.name != name,
		handles:  make([]string, len(b.readable)),
	}
	if b.version != "" {
		listed.Object = &reaper.Object{APIVersion: l.intern(b.version), Kind: "IPAMBlock", Name: b.name, UID: b.uid}
	}
	for i := range b.readable {
		listed.handles[i] = l.sameID(b.readable[i].handle())
	}
	for ordinal, index := range b.allocations {
		if index == nil {
			continue
		}
		if b.infers(ordinal) {
			listed.bare = append(listed.bare, len(listed.Allocations))
		}
		a := b.allocation(ordinal)
		a.Group = listed.handles[*index]
		if strings.HasSuffix(a.Group, a.Owner.Sandbox) {
			a.Owner.Sandbox = a.Group[len(a.Group)-len(a.Owner.Sandbox):]
		}
		a.Owner.Node, a.Owner.Pod.Namespace = l.intern(a.Owner.Node), l.intern(a.Owner.Pod.Namespace)
		listed.Allocations = append(listed.Allocations, a)
	}
	return listed
}

// sameID returns the ID in the memory of its handle, if there is such a handle.
func (l *listing) sameID(id string) string {
	if h := l.byID[id]; h != nil {
		return h.id
	}
	return id
}

// intern returns the text, in the same memory for all equal ones.
func (l *listing) intern(text string) string {
	if same, ok := l.texts[text]; ok {
		return same
	}
	l.texts[text] = text
	return text
}
