package whereabouts

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"strings"
)

// parseRange reads a pool's spec.range. The address part is kept as it is
// written: the plugin counts offsets from there, not from the masked network
// and not from range_start.
func parseRange(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("spec.range: %w", err)
	}
	return prefix, nil
}

// addressAt returns the address that the key of an allocation stands for: the
// range's address as written plus the key as a decimal offset. It refuses what
// the plugin would not have written, and offsets that leave the range.
func addressAt(prefix netip.Prefix, key string) (netip.Addr, error) {
	if key == "" || strings.Trim(key, "0123456789") != "" || (key[0] == '0' && key != "0") {
		return netip.Addr{}, fmt.Errorf("offset %q is not a plain decimal number", key)
	}
	offset, _ := new(big.Int).SetString(key, 10)
	base := prefix.Addr().AsSlice()
	sum := offset.Add(offset, new(big.Int).SetBytes(base))
	if sum.BitLen() > 8*len(base) {
		return netip.Addr{}, errOutside(key, prefix)
	}
	ip, ok := netip.AddrFromSlice(sum.FillBytes(make([]byte, len(base))))
	if !ok || !prefix.Contains(ip) {
		return netip.Addr{}, errOutside(key, prefix)
	}
	return ip.Unmap(), nil
}

func errOutside(key string, prefix netip.Prefix) error {
	return fmt.Errorf("offset %s lies outside of %s", key, prefix)
}

// capacity returns how many addresses the plugin can give from a range: it
// spares the first and the last, in both families, and refuses ranges of fewer
// than four (HasUsableIPs in its pkg/iphelpers). A network's range_start,
// range_end and exclude are not stored in the pool and not counted.
func capacity(prefix netip.Prefix) *big.Int {
	hostBits := prefix.Addr().BitLen() - prefix.Bits()
	if hostBits < 2 {
		return new(big.Int)
	}
	n := new(big.Int).Lsh(big.NewInt(1), uint(hostBits))
	return n.Sub(n, big.NewInt(2))
}

// unnamed is the network of networks without a network_name.
const unnamed = "-"

// errAmbiguous is a name that more than one address and network could have
// made.
var errAmbiguous = errors.New("the name does not prove an address")

// normalizeRange is the form that a range has in the names of pools.
func normalizeRange(text string) string {
	return strings.NewReplacer(":", "-", "/", "-").Replace(text)
}

// poolPrefix returns what stands before the range in the name of a pool: a
// network_name, a node, both, or nothing. It reports false for a name that the
// plugin would not have made of this range.
func poolPrefix(name string, prefix netip.Prefix) (string, bool) {
	suffix := normalizeRange(prefix.Masked().String())
	if name == suffix {
		return "", true
	}
	return strings.CutSuffix(name, "-"+suffix)
}

// normalizeIP is the form that an address has in the names of overlapping-range
// allocations: colons become hyphens, and a trailing one gets a 0.
func normalizeIP(ip netip.Addr) string {
	text := ip.String()
	if strings.HasSuffix(text, ":") {
		text += "0"
	}
	return strings.ReplaceAll(text, ":", "-")
}
