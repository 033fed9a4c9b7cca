package whereabouts

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// pluginType is the type by which a network's configuration calls the plugin.
const pluginType = "whereabouts"

// An exclusion is what a network attachment excludes from one of its ranges. The
// plugin does not give such an address to anybody, but it may have done so
// before it was excluded.
//
// What the plugin's configuration file on a node excludes is not seen: that is
// not in the API.
type exclusion struct {
	attachment string       // namespace/name
	network    string       // its network_name; empty may be any
	from       netip.Prefix // the range; not valid where it may be any
	ranges     []*net.IPNet // at least one
}

// exclusions are those of all attachments.
type exclusions []exclusion

// mark says of each address of a pool by what it is excluded.
func (all exclusions) mark(u *reaper.Pool) {
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
			r.Protected = fitting.reserved(r.IP)
		}
	}
}

// fits reports whether the pool may be of the network and of the range. As in
// supportedBy, a node may stand behind a network_name in the name of a pool. A
// pool that tells no network, or no range, may be of any.
func (e exclusion) fits(u reaper.Pool) bool {
	if e.from.IsValid() && u.Range.IsValid() && !e.from.Overlaps(u.Range) {
		return false
	}
	return e.network == "" || u.Network == "" || u.Network == e.network || strings.HasPrefix(u.Network, e.network+"-")
}

// reserved says by what the address is excluded; empty if by nothing.
func (all exclusions) reserved(ip netip.Addr) string {
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

// A rangeConfig is what the plugin calls RangeConfiguration.
type rangeConfig struct {
	Range   string   `json:"range"`
	Exclude []string `json:"exclude"`
}

// readConfig returns what the configuration of a network excludes, be it of one
// CNI plugin or of several, one behind the other or inside the other: every
// object whose type is the plugin's counts. It is decoded as the plugin does it
// (pkg/config of v0.9.4), with field names in whatever case. What is not JSON, as
// a configuration that is a file on the nodes, is an error only if it speaks of
// the plugin.
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
		// The range beside ipRanges is one of them, with an exclude of its own.
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

// sections returns the objects whose type is the plugin's.
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

// rangeOf reads a range, written as a CIDR or as first-CIDR. It is not valid where
// there is none: then a file on the nodes may say it. The same goes for one that
// cannot be read, which only makes that more is kept.
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

// parseExclude reads a CIDR or an address, as the plugin does (parseExcludedRange
// in its pkg/allocate). It gives no address at all where it cannot read one.
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
