package reaper

import (
	"iter"
	"net/netip"
	"slices"
)

// An index finds the allocations of all stores that prove an owner, by what they have in
// common. It takes some 40 bytes for each, because most of them are never asked about. An
// index does not change after newIndex, and is safe for concurrent use.
type index struct {
	all []*Allocation // in the order of the listing

	sandboxes, groups sharers
	byAddress         positions[held]
}

// A held is an address and the pod that has it by a store.
type held struct {
	ip  netip.Addr
	pod PodRef
}

// newIndex returns the index of these allocations.
func newIndex(all []*Allocation) index {
	x := index{all: all, sandboxes: newSharers(all, false), groups: newSharers(all, true), byAddress: newPositions[held](len(all))}
	for i, a := range slices.Backward(all) {
		x.byAddress.put(i, held{a.IP, a.Owner.Pod})
	}
	return x
}

// of yields the allocations by which any store gives the address to the pod, in the order
// of the listing.
func (x *index) of(ip netip.Addr, pod PodRef) iter.Seq[*Allocation] {
	return func(yield func(*Allocation) bool) {
		for i := range x.byAddress.at(held{ip, pod}) {
			if a := x.all[i]; a.IP == ip && a.Owner.Pod == pod && !yield(a) {
				return
			}
		}
	}
}
