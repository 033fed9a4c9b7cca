package whereabouts

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"strings"
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

// normalizeIP returns an address in the form used in the names of overlapping reservations:
// colons become hyphens, and a trailing colon gets a 0.
func normalizeIP(ip netip.Addr) string {
	text := ip.String()
	if strings.HasSuffix(text, ":") {
		text += "0"
	}
	return strings.ReplaceAll(text, ":", "-")
}
