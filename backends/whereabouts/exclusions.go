package whereabouts

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// pluginType is the plugin's type in the configuration of a network.
const pluginType = "whereabouts"

// An exclusion is the addresses that a network attachment excludes from one of its
// ranges. The plugin allocates no excluded address, but it may have allocated one
// before it was excluded.
//
// The plugin's configuration file on a node may exclude addresses, too. The API
// server does not have that file, so such an exclusion is unknown here.
type exclusion struct {
	attachment string       // namespace/name
	network    string       // its network_name; empty: any network
	from       netip.Prefix // the range; not valid: any range
	ranges     []*net.IPNet // at least one
}

// exclusions are the exclusions of all network attachments.
type exclusions []exclusion

// protect sets the protection of each excluded address in a pool.
func (all exclusions) protect(u *reaper.Pool) {
	var fitting exclusions
	for _, e := range all {
		if e.fits(*u) {
			fitting = append(fitting, e)
		}
	}
	if len(fitting) == 0 {
		return
	}
	for i := range u.Allocations {
		if r := &u.Allocations[i]; r.IP.IsValid() {
			r.Protected = fitting.protection(r.IP)
		}
	}
}

// fits reports whether the pool may be of the exclusion's network and range. As in
// supportedBy, a node may follow the network_name in the name of a pool. A pool
// without a network, or without a range, may be of any.
func (e exclusion) fits(u reaper.Pool) bool {
	if e.from.IsValid() && u.Range.IsValid() && !e.from.Overlaps(u.Range) {
		return false
	}
	return e.network == "" || u.Network == "" || u.Network == e.network || strings.HasPrefix(u.Network, e.network+"-")
}

// protection names the attachment that excludes the address. It returns an empty
// string if there is none.
func (all exclusions) protection(ip netip.Addr) string {
	address := net.IP(ip.AsSlice())
	for _, e := range all {
		for _, r := range e.ranges {
			if r.Contains(address) {
				return "excluded by the network attachment " + e.attachment
			}
		}
	}
	return ""
}

// A rangeConfig is the plugin's RangeConfiguration.
type rangeConfig struct {
	Range   string   `json:"range"`
	Exclude []string `json:"exclude"`
}

// readConfig returns what the configuration of a network excludes. The
// configuration may be of one CNI plugin, of a list, or of plugins inside others:
// readConfig takes every object with the plugin's type. It decodes as the plugin
// does (pkg/config of v0.9.4), which ignores the case of field names. A
// configuration that is no JSON, such as the name of a file, is an error only if it
// contains the plugin's type.
func readConfig(config string) (exclusions, error) {
	var root any
	if err := json.Unmarshal([]byte(config), &root); err != nil {
		if strings.Contains(config, pluginType) {
			return nil, err
		}
		return nil, nil
	}
	var all exclusions
	for _, section := range sections(root) {
		data, err := json.Marshal(section)
		if err != nil {
			return nil, err
		}
		var ipam struct {
			rangeConfig
			Ranges  []rangeConfig `json:"ipRanges"`
			Network string        `json:"network_name"`
		}
		if err := json.Unmarshal(data, &ipam); err != nil {
			return nil, err
		}
		// The plugin treats a range beside ipRanges as one of them, with an exclude
		// of its own.
		for _, r := range append(ipam.Ranges, ipam.rangeConfig) {
			if len(r.Exclude) == 0 {
				continue
			}
			e := exclusion{network: ipam.Network, from: rangeOf(r.Range)}
			for _, text := range r.Exclude {
				excluded, err := parseExclude(text)
				if err != nil {
					return nil, fmt.Errorf("exclude: %w", err)
				}
				e.ranges = append(e.ranges, excluded)
			}
			all = append(all, e)
		}
	}
	return all, nil
}

// sections returns the objects with the plugin's type.
func sections(value any) []map[string]any {
	var found []map[string]any
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			found = append(found, sections(element)...)
		}
	case map[string]any:
		for name, field := range value {
			if strings.EqualFold(name, "type") && field == pluginType {
				return []map[string]any{value}
			}
			found = append(found, sections(field)...)
		}
	}
	return found
}

// rangeOf parses a range, written as a CIDR or as first-CIDR. It returns a prefix
// that is not valid if there is no range, since a file on the nodes may have it,
// and if the range cannot be parsed. Then the exclusion counts for any range, and
// more is kept.
func rangeOf(text string) netip.Prefix {
	if _, cidr, ok := strings.Cut(text, "-"); ok {
		text = cidr
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil || prefix.Addr().Is4In6() {
		return netip.Prefix{}
	}
	return prefix.Masked()
}

// parseExclude parses a CIDR or an address, like parseExcludedRange in the plugin's
// pkg/allocate. If the plugin cannot parse an exclude, it allocates no address at
// all.
func parseExclude(text string) (*net.IPNet, error) {
	_, excluded, err := net.ParseCIDR(text)
	if err == nil {
		return excluded, nil
	}
	ip := net.ParseIP(text)
	switch {
	case ip == nil:
		return nil, err
	case ip.To4() != nil:
		text += "/32"
	default:
		text += "/128"
	}
	_, excluded, err = net.ParseCIDR(text)
	return excluded, err
}
