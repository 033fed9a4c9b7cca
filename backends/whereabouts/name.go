package whereabouts

import (
	"fmt"
	"net/netip"
	"strings"
)

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
