package ipam

import (
	"math/big"
	"net/netip"
	"slices"
)

// A Span has the addresses from First to Last, both of one family.
type Span struct{ First, Last netip.Addr }

// SpanOf returns the addresses of a prefix, which must be valid.
func SpanOf(p netip.Prefix) Span {
	first := p.Masked().Addr()
	last := first.AsSlice()
	for bit := p.Bits(); bit < first.BitLen(); bit++ {
		last[bit/8] |= 1 << (7 - bit%8)
	}
	end, _ := netip.AddrFromSlice(last)
	return Span{first, end}
}

// Spans are a set of addresses: spans in order that do not touch each other, as NewSpans
// makes them. The zero Spans have no address. A lookup takes logarithmic time.
type Spans []Span

// NewSpans returns the addresses that are in any of the spans. It changes the order of
// its argument. A span whose last address is before its first has no address.
func NewSpans(all ...Span) Spans {
	all = slices.DeleteFunc(all, func(s Span) bool {
		return !s.First.IsValid() || s.First.BitLen() != s.Last.BitLen() || s.Last.Less(s.First)
	})
	slices.SortFunc(all, func(a, b Span) int { return a.First.Compare(b.First) })
	merged := all[:0]
	for _, s := range all {
		n := len(merged)
		switch {
		case n == 0 || merged[n-1].Last.Less(s.First) && merged[n-1].Last.Next() != s.First:
			merged = append(merged, s)
		case merged[n-1].Last.Less(s.Last):
			merged[n-1].Last = s.Last
		}
	}
	return merged
}

// Contains reports whether the address is in the set.
func (s Spans) Contains(ip netip.Addr) bool {
	i, found := slices.BinarySearchFunc(s, ip, func(one Span, ip netip.Addr) int { return one.First.Compare(ip) })
	return found || i > 0 && ip.Compare(s[i-1].Last) <= 0
}

// Count returns the number of addresses.
func (s Spans) Count() *big.Int {
	n := new(big.Int)
	for _, one := range s {
		size := new(big.Int).SetBytes(one.Last.AsSlice())
		size.Sub(size, new(big.Int).SetBytes(one.First.AsSlice()))
		n.Add(n, size.Add(size, big.NewInt(1)))
	}
	return n
}

// Without returns the addresses of the set that are not in other.
func (s Spans) Without(other Spans) Spans {
	var left Spans
	for _, one := range s {
		// The first of the others that can cut this span.
		i, _ := slices.BinarySearchFunc(other, one.First, func(o Span, ip netip.Addr) int { return o.Last.Compare(ip) })
		for ; i < len(other) && other[i].First.Compare(one.Last) <= 0 && one.First.IsValid(); i++ {
			if cut := other[i]; one.First.Less(cut.First) {
				left = append(left, Span{one.First, cut.First.Prev()})
			}
			one.First = other[i].Last.Next() // not valid after the last address of a family
			if one.Last.Less(one.First) {
				one.First = netip.Addr{}
			}
		}
		if one.First.IsValid() {
			left = append(left, one)
		}
	}
	return left
}

// Within returns the addresses of the set that are in a prefix, which must be valid.
func (s Spans) Within(p netip.Prefix) Spans {
	in := SpanOf(p)
	var found Spans
	i, _ := slices.BinarySearchFunc(s, in.First, func(o Span, ip netip.Addr) int { return o.Last.Compare(ip) })
	for ; i < len(s) && s[i].First.Compare(in.Last) <= 0; i++ {
		one := s[i]
		if one.First.Less(in.First) {
			one.First = in.First
		}
		if in.Last.Less(one.Last) {
			one.Last = in.Last
		}
		found = append(found, one)
	}
	return found
}
