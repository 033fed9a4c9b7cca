package reservedips

import (
	"net/netip"
	"strings"
	"unicode"

	netutils "k8s.io/utils/net"
)

// maxLoose is the most addresses that a malformed text protects. With more, one object could
// hold whole networks of other tenants.
const maxLoose = 256

// mayName returns the addresses that a malformed text may name: those of a small network, those
// from one address to another, several in one text, and IPv4 with leading zeros, which other
// programs accept. A network of more than maxLoose addresses may be an address with its
// network, so only that address counts.
func mayName(text string) []netip.Addr {
	var all []netip.Addr
	for _, piece := range strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune(",;|", c) }) {
		ip, last := looseSpan(piece)
		for ; ip.IsValid() && ip.Compare(last) <= 0 && len(all) < maxLoose; ip = ip.Next() {
			all = append(all, ip)
		}
	}
	return all
}

// looseSpan returns the first and the last address of one piece of a text. Both are invalid if
// the piece names none.
func looseSpan(piece string) (first, last netip.Addr) {
	if low, high, both := strings.Cut(piece, "-"); both {
		if first, last = looseAddress(low), looseAddress(high); first.BitLen() != last.BitLen() {
			return netip.Addr{}, netip.Addr{}
		}
		return first, last
	}
	network, err := netip.ParsePrefix(piece)
	if err != nil {
		ip := looseAddress(piece)
		return ip, ip
	}
	ip, mapped := network.Addr().Unmap(), network.Addr().Is4In6()
	if hosts := network.Addr().BitLen() - network.Bits(); mapped || 1<<min(hosts, 30) > maxLoose {
		return ip, ip
	}
	first = network.Masked().Addr()
	for last = first; network.Contains(last.Next()); {
		last = last.Next()
	}
	return first, last
}

// looseAddress parses an address, ignoring its zone and leading zeros in IPv4. The result is
// invalid if the text is not an address.
func looseAddress(text string) netip.Addr {
	text, _, _ = strings.Cut(text, "%")
	ip, _ := netip.AddrFromSlice(netutils.ParseIPSloppy(text))
	return ip.Unmap()
}
