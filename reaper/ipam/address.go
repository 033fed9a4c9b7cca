package ipam

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
)

// An Address is an IP of one network. Several allocations may be of one address: the entry of a pool and
// its overlapping-range reservation, or the entries of two pools.
type Address struct {
	Network string     // in which the IP is unique: see Allocation
	IP      netip.Addr // not valid if an allocation has none
}

// Address returns the address of the allocation.
func (a *Allocation) Address() Address { return Address{a.Network, a.IP} }

// compare orders addresses by their IPs.
func (a Address) compare(b Address) int {
	if order := a.IP.Compare(b.IP); order != 0 {
		return order
	}
	return cmp.Compare(a.Network, b.Network)
}

// Addresses yields what is of each address, in its order. It sorts all by address. What has no IP is of
// none.
func Addresses[E any](all []E, of func(E) Address) iter.Seq[[]E] {
	return func(yield func([]E) bool) {
		compare := func(a, b E) int { return of(a).compare(of(b)) }
		if !slices.IsSortedFunc(all, compare) { // most stores list in this order
			slices.SortStableFunc(all, compare)
		}
		for rest := all; len(rest) > 0; {
			address, n := of(rest[0]), 1
			for n < len(rest) && of(rest[n]) == address {
				n++
			}
			if address.IP.IsValid() && !yield(rest[:n:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}
