package whereabouts

import (
	"net"
	"net/netip"
	"slices"
)

// A span has the addresses from first to last.
type span struct{ first, last netip.Addr }

// spans are in order, and do not touch each other. A tenant may write tens of thousands of
// excludes into one attachment, so a question takes the logarithm of their number.
type spans []span

// spansOf returns the addresses of the networks.
func spansOf(networks []*net.IPNet) spans {
	all := make(spans, 0, len(networks))
	for _, n := range networks {
		first, last := ends(n)
		all = append(all, span{first, last})
	}
	slices.SortFunc(all, func(a, b span) int { return a.first.Compare(b.first) })
	merged := all[:0]
	for _, s := range all {
		n := len(merged)
		switch {
		case n == 0 || merged[n-1].last.Less(s.first) && merged[n-1].last.Next() != s.first:
			merged = append(merged, s)
		case merged[n-1].last.Less(s.last):
			merged[n-1].last = s.last
		}
	}
	return merged
}

// contain reports whether the address is in one of the spans.
func (all spans) contain(ip netip.Addr) bool {
	i, found := slices.BinarySearchFunc(all, ip, func(s span, ip netip.Addr) int { return s.first.Compare(ip) })
	return found || i > 0 && ip.Compare(all[i-1].last) <= 0
}
