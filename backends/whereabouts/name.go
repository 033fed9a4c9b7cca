package whereabouts

import (
	"fmt"
	"net/netip"
	"strings"
)

// A reading is one way to understand the name of an overlapping-range
// allocation: [network-]address.
type reading struct {
	network string // empty for an unnamed network
	ip      netip.Addr
}

// readings returns every address and network that could have made this name,
// the longest network first. An IPv4 name has one reading. An IPv6 name can
// have several: 2001-db8--2 is 2001:db8::2 of an unnamed network, or db8::2 of
// a network named 2001.
func readings(name string) []reading {
	var all []reading
	for i := len(name) - 1; i >= 0; i-- {
		if i == 1 || (i > 1 && name[i-1] != '-') {
			continue // not behind a network's name and its hyphen
		}
		if ip, ok := readIP(name[i:]); ok {
			all = append(all, reading{name[:max(0, i-1)], ip})
		}
	}
	return all
}

// readIP reads the form that normalizeIP writes, and only that.
func readIP(text string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(strings.ReplaceAll(text, "-", ":"))
	if err != nil || ip.Zone() != "" || ip.Is4In6() || normalizeIP(ip) != text {
		return netip.Addr{}, false
	}
	return ip, true
}

// parseName takes the name of a allocation apart. Where several readings are
// possible, the pools of its namespace decide: the plugin makes a allocation
// beside an allocation in a pool of that network, so only a reading that some
// pool's range and name support can be right. What is not proved that way is
// an error.
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
	return reading{}, fmt.Errorf("%w: %q has %d readings, and pools that support %d of them",
		errAmbiguous, name, len(all), len(supported))
}

// supportedBy reports whether some pool could have given the address in the
// network. The node name in a node-slice pool's name cannot be told from a
// network_name, so an unnamed network may be behind any prefix.
func (r reading) supportedBy(pools []ipPool) bool {
	for _, p := range pools {
		prefix, ok := poolPrefix(p.name, p.prefix)
		if !p.prefix.Contains(r.ip) || !ok {
			continue
		}
		if r.network == "" || prefix == r.network || strings.HasPrefix(prefix, r.network+"-") {
			return true
		}
	}
	return false
}
