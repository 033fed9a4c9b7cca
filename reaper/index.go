package reaper

import (
	"hash/maphash"
	"iter"
	"net/netip"
)

// An index finds the allocations of all stores that prove an owner, by what they have in
// common. It takes some 50 bytes for each, because most of them are never asked about: a
// chain holds positions, and a question compares. An index does not change after newIndex,
// and is safe for concurrent use.
type index struct {
	seed maphash.Seed
	all  []*Allocation // in the order of the listing

	bySandbox chain
	byGroup   chain
	byAddress chain // by the address and the pod
}

// newIndex returns the index of these allocations.
func newIndex(all []*Allocation) index {
	x := index{seed: maphash.MakeSeed(), all: all}
	x.bySandbox, x.byGroup, x.byAddress = newChain(len(all)), newChain(len(all)), newChain(len(all))
	for i := len(all) - 1; i >= 0; i-- { // the last one is put in first, and found last
		a := all[i]
		if a.Owner.Sandbox != "" {
			x.bySandbox.put(i, maphash.String(x.seed, a.Owner.Sandbox))
		}
		if a.Group != "" {
			x.byGroup.put(i, maphash.String(x.seed, a.Group))
		}
		x.byAddress.put(i, maphash.Comparable(x.seed, held{a.IP, a.Owner.Pod}))
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
	return x.those(&x.bySandbox, maphash.String(x.seed, sandbox), func(a *Allocation) bool {
		return sandbox != "" && a.Owner.Sandbox == sandbox
	})
}

// ofGroup yields the allocations of a group; none without its name.
func (x *index) ofGroup(group string) iter.Seq[*Allocation] {
	return x.those(&x.byGroup, maphash.String(x.seed, group), func(a *Allocation) bool {
		return group != "" && a.Group == group
	})
}

// of yields the allocations by which any store gives the address to the pod.
func (x *index) of(ip netip.Addr, pod PodRef) iter.Seq[*Allocation] {
	return x.those(&x.byAddress, maphash.Comparable(x.seed, held{ip, pod}), func(a *Allocation) bool {
		return a.IP == ip && a.Owner.Pod == pod
	})
}

// those yields the allocations of a chain that are meant, in the order of the listing.
func (x *index) those(c *chain, hash uint64, meant func(*Allocation) bool) iter.Seq[*Allocation] {
	return func(yield func(*Allocation) bool) {
		for i := range c.at(hash) {
			if a := x.all[i]; meant(a) && !yield(a) {
				return
			}
		}
	}
}

// A chain is a hash table of positions, of a size that is given before.
type chain struct {
	heads []int32 // by hash: the last position that was put in, plus 1; 0 if there is none
	next  []int32 // by position: the one that was put in before, plus 1; 0 if there is none
}

// newChain returns a chain for positions below n.
func newChain(n int) chain {
	size := 1
	for size < n {
		size *= 2
	}
	return chain{heads: make([]int32, size), next: make([]int32, n)}
}

// put adds a position, which must not be in the chain yet.
func (c *chain) put(i int, hash uint64) {
	head := &c.heads[hash&uint64(len(c.heads)-1)]
	c.next[i], *head = *head, int32(i+1)
}

// at yields the positions of a hash, and some of others.
func (c *chain) at(hash uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		if len(c.next) == 0 {
			return
		}
		for i := c.heads[hash&uint64(len(c.heads)-1)]; i != 0; i = c.next[i-1] {
			if !yield(int(i - 1)) {
				return
			}
		}
	}
}
