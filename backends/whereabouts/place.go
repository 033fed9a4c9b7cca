package whereabouts

import (
	"cmp"
	"math/big"
	"net/netip"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A place is a pool from which the plugin gives addresses.
type place struct {
	network string       // empty: unknown
	in      netip.Prefix // the range of the pool; invalid: unknown
}

// place returns the place of an IPPool.
func (p ipPool) place() place {
	at := place{in: asRange(p.prefix)}
	if network, ok := poolPrefix(p.name, p.prefix); ok {
		at.network = cmp.Or(network, unnamed)
	}
	return at
}

// asRange returns a range as rangeOf does: masked, and IPv4 if it is IPv4 in IPv6.
func asRange(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// handedOut returns the addresses that the plugin gives from a range without further settings:
// none if there are fewer than four (HasUsableIPs in pkg/iphelpers).
func handedOut(in netip.Prefix) ipam.Spans {
	if hostBits(in) < 2 {
		return nil
	}
	s := ipam.SpanOf(in)
	return ipam.Spans{{First: s.First.Next(), Last: s.Last.Prev()}}
}

// hostBits returns how many bits of the addresses of a range differ.
func hostBits(p netip.Prefix) int { return p.Addr().BitLen() - p.Bits() }

// nameOf returns the name that the plugin gives to the pool of a place, without its namespace.
func nameOf(at place) string {
	name := normalizeRange(at.in.String())
	if at.network == unnamed || at.network == "" {
		return name
	}
	return at.network + "-" + name
}

// comparePlaces orders places by network and range.
func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.network, b.network), a.in.Addr().Compare(b.in.Addr()), cmp.Compare(a.in.Bits(), b.in.Bits()))
}

// mayBeOf reports whether a pool with this prefix before the range in its name may be of the
// network; the unnamed network is empty. In the name of a node-slice pool, the node cannot be
// told from a network_name, so a pool of the unnamed network may have any prefix.
func mayBeOf(prefix, network string) bool {
	return network == "" || prefix == network || strings.HasPrefix(prefix, network+"-")
}

// keyOf returns the key of an address in a pool of the range: the offset from the range's
// address as written. It is the inverse of addressAt, and returns an empty string for an
// address that has no offset.
func keyOf(prefix netip.Prefix, ip netip.Addr) string {
	if !prefix.Contains(ip) || ip.Less(prefix.Addr()) {
		return ""
	}
	offset := new(big.Int).SetBytes(ip.AsSlice())
	return offset.Sub(offset, new(big.Int).SetBytes(prefix.Addr().AsSlice())).String()
}
