package whereabouts

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// parseRange parses a pool's spec.range. It keeps the address part as written: the plugin
// counts offsets from there, not from the masked network or range_start.
func parseRange(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("spec.range: %q is not a CIDR", text)
	}
	return prefix, nil
}

// addressAt returns the address of an allocation's key: the range's address as
// written, plus the key as a decimal offset. It returns an error for a key that the
// plugin would not have written, and for an offset that leaves the range.
func addressAt(prefix netip.Prefix, key string) (netip.Addr, error) {
	if key == "" || strings.Trim(key, "0123456789") != "" || (key[0] == '0' && key != "0") {
		return netip.Addr{}, fmt.Errorf("offset %q is not a plain decimal number", key)
	}
	offset, _ := new(big.Int).SetString(key, 10)
	base := prefix.Addr().AsSlice()
	sum := offset.Add(offset, new(big.Int).SetBytes(base))
	if sum.BitLen() <= 8*len(base) {
		if ip, ok := netip.AddrFromSlice(sum.FillBytes(make([]byte, len(base)))); ok && prefix.Contains(ip) {
			return ip.Unmap(), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("offset %s lies outside the range %s", key, prefix)
}

// unnamed is the Network of pools whose configuration has no network_name.
const unnamed = "-"

// errAmbiguous is the error for a name that fits no address and network, or more
// than one.
var errAmbiguous = errors.New("the name does not identify one address")

// normalizeRange returns a range in the form used in the names of pools.
func normalizeRange(text string) string {
	return strings.NewReplacer(":", "-", "/", "-").Replace(text)
}

// poolPrefix returns the part of a pool's name before the range: a network_name, a
// node, both, or nothing. It reports false for a name that the plugin would not
// have given to a pool of this range.
func poolPrefix(name string, prefix netip.Prefix) (string, bool) {
	suffix := normalizeRange(prefix.Masked().String())
	if name == suffix {
		return "", true
	}
	return strings.CutSuffix(name, "-"+suffix)
}

// rangeInName returns the IPv4 range with which the name of a pool ends; not valid if it ends with none. The
// plugin finds a pool by its name, so it gives no other addresses from it.
func rangeInName(name string) netip.Prefix {
	end := strings.LastIndex(name, "-")
	if end < 0 {
		return netip.Prefix{}
	}
	in, err := netip.ParsePrefix(name[strings.LastIndex(name[:end], "-")+1:end] + "/" + name[end+1:])
	if err != nil || !in.Addr().Is4() {
		return netip.Prefix{}
	}
	return in
}

// normalizeIP returns an address in the form used in the names of overlapping reservations:
// colons become hyphens, and a trailing colon gets a 0.
func normalizeIP(ip netip.Addr) string {
	text := ip.String()
	if strings.HasSuffix(text, ":") {
		text += "0"
	}
	return strings.ReplaceAll(text, ":", "-")
}

// A reading is one way to split the name of an overlapping reservation, which is
// [network-]address.
type reading struct {
	network string // empty: an unnamed network
	ip      netip.Addr
}

// readings returns every address and network for which the plugin makes this name, the longest
// network first. An IPv4 name has one reading, an IPv6 name can have several: 2001-db8--2 is
// 2001:db8::2 of an unnamed network, or db8::2 of a network named 2001.
func readings(name string) []reading {
	var all []reading
	for i := len(name) - 1; i >= 0; i-- {
		if i == 1 || (i > 1 && name[i-1] != '-') {
			continue // an address follows a network's name and a hyphen
		}
		if ip, ok := readIP(name[i:]); ok {
			all = append(all, reading{name[:max(0, i-1)], ip})
		}
	}
	return all
}

// readIP parses only the form that normalizeIP writes.
func readIP(text string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(strings.ReplaceAll(text, "-", ":"))
	if err != nil || ip.Zone() != "" || ip.Is4In6() || normalizeIP(ip) != text {
		return netip.Addr{}, false
	}
	return ip, true
}

// parseName returns the reading of an overlapping reservation's name. If there are several
// readings, the pools of its namespace decide: the plugin makes an overlapping reservation
// along with an allocation in a pool of that network. So the range and name of a pool support
// the right reading. If not exactly one reading is supported, parseName returns an error that
// wraps errAmbiguous.
func parseName(name string, pools []ipPool) (reading, error) {
	all := readings(name)
	if len(all) == 1 {
		return all[0], nil
	}
	var supported []reading
	for _, r := range all {
		if r.supportedBy(pools) {
			supported = append(supported, r)
		}
	}
	if len(supported) == 1 {
		return supported[0], nil
	}
	return reading{}, fmt.Errorf("%w: %q can be read in %d ways, of which the pools of its namespace support %d",
		errAmbiguous, name, len(all), len(supported))
}

// supportedBy reports whether a pool could have given the address in the network.
func (r reading) supportedBy(pools []ipPool) bool {
	for _, p := range pools {
		if !p.prefix.Contains(r.ip) {
			continue
		}
		if prefix, ok := poolPrefix(p.name, p.prefix); ok && mayBeOf(prefix, r.network) {
			return true
		}
	}
	return false
}

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
