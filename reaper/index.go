package reaper

import (
	"iter"
	"net/netip"
)

// An index finds the allocations of all stores that prove an owner, by what they have in
// common. It takes some 40 bytes for each, because most of them are never asked about. An
// index does not change after newIndex, and is safe for concurrent use.
type index struct {
	all []*Allocation // in the order of the listing

	bySandbox, byGroup positions[string]
	byAddress          positions[held]
}

// newIndex returns the index of these allocations.
func newIndex(all []*Allocation) index {
	n := len(all)
	x := index{all: all, bySandbox: newPositions[string](n), byGroup: newPositions[string](n), byAddress: newPositions[held](n)}
	for i := n - 1; i >= 0; i-- { // so that at goes in the order of the listing
		a := all[i]
		if a.Owner.Sandbox != "" {
			x.bySandbox.put(i, a.Owner.Sandbox)
		}
		if a.Group != "" {
			x.byGroup.put(i, a.Group)
		}
		x.byAddress.put(i, held{a.IP, a.Owner.Pod})
	}
	return x
}

// A held is an address and the pod that has it by a store.
type held struct {
	ip  netip.Addr
	pod PodRef
}

// ofSandbox yields the allocations of a sandbox; none without its name.
func (x *index) ofSandbox(sandbox string) iter.Seq[*Allocation] {
	return x.those(x.bySandbox.at(sandbox), func(a *Allocation) bool {
		return sandbox != "" && a.Owner.Sandbox == sandbox
	})
}

// ofGroup yields the allocations of a group; none without its name.
func (x *index) ofGroup(group string) iter.Seq[*Allocation] {
	return x.those(x.byGroup.at(group), func(a *Allocation) bool {
		return group != "" && a.Group == group
	})
}

// of yields the allocations by which any store gives the address to the pod.
func (x *index) of(ip netip.Addr, pod PodRef) iter.Seq[*Allocation] {
	return x.those(x.byAddress.at(held{ip, pod}), func(a *Allocation) bool {
		return a.IP == ip && a.Owner.Pod == pod
	})
}

// those yields the allocations at these positions that are meant.
func (x *index) those(at iter.Seq[int], meant func(*Allocation) bool) iter.Seq[*Allocation] {
	return func(yield func(*Allocation) bool) {
		for i := range at {
			if a := x.all[i]; meant(a) && !yield(a) {
				return
			}
		}
	}
}
