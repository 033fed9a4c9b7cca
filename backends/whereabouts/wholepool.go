package whereabouts

import (
	"net"
	"net/netip"
	"slices"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/iphelpers"
)

// wholeProtection says what protects every address that a pool of the range can give;
// it is empty if the pool can give an address that nothing protects. If several
// attachments do together, it names the one that protects the first address.
//
// Only a few addresses need a look: the first one, and each one before which a
// protection may end.
func (all exclusions) wholeProtection(at place, in netip.Prefix) string {
	first, last := ends(network(in))
	if inner, outer := first.Next(), last.Prev(); inner.Compare(outer) <= 0 {
		first, last = inner, outer // the plugin gives neither the first nor the last
	}
	by := all.protection(at, first)
	if by == "" {
		return ""
	}
	for _, ip := range all.turns(at) {
		if !in.Contains(ip) || ip.Less(first) || last.Less(ip) {
			continue
		}
		if all.protection(at, ip) == "" {
			return ""
		}
	}
	return by
}

// turns returns each address before which a protection may end at the place: those
// after an excluded range, and the first ones that an attachment gives.
func (all exclusions) turns(at place) []netip.Addr {
	var turns []netip.Addr
	for _, r := range slices.Concat(all.keepingAt(at), all.giving, all.givingSlices) {
		if r.first.IsValid() {
			turns = append(turns, r.first)
		}
		if !r.mayBeOf(at, r.from.Addr()) && !r.first.IsValid() {
			continue
		}
		_, last := ends(network(r.from))
		turns = append(turns, last.Next())
		for _, excluded := range r.exclude {
			turns = append(turns, excluded.Last.Next())
		}
	}
	return turns
}

// ends returns the first and the last address of a network. Like package net, it takes a
// network of IPv4 in IPv6 for one of IPv4 only if all of it is.
func ends(n *net.IPNet) (first, last netip.Addr) {
	first, _ = netip.AddrFromSlice(n.IP)
	last, _ = netip.AddrFromSlice(iphelpers.SubnetBroadcastIP(*n))
	if n.IP.To4() != nil {
		first, last = first.Unmap(), last.Unmap()
	}
	return first, last
}

// network returns a prefix in the form of package net.
func network(p netip.Prefix) *net.IPNet {
	p = p.Masked()
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
