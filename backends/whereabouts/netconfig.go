package whereabouts

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/iphelpers"
	netutils "k8s.io/utils/net"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// pluginType is the plugin's type in the configuration of a network.
const pluginType = "whereabouts"

// An ipamConfig is the plugin's section of a configuration.
type ipamConfig struct {
	rangeConfig
	Ranges        []rangeConfig `json:"ipRanges"`
	Network       string        `json:"network_name"`
	NodeSliceSize string        `json:"node_slice_size"`
}

// A rangeConfig is the plugin's RangeConfiguration.
type rangeConfig struct {
	Range   string   `json:"range"`
	Exclude []string `json:"exclude"`
	Start   string   `json:"range_start"`
	End     string   `json:"range_end"`
}

// readConfig returns the ranges that the configuration of a network has for the plugin. The
// configuration may be of one CNI plugin, of a list, or of plugins inside others: readConfig
// takes every object with the plugin's type. It decodes as the plugin does (pkg/config of
// v0.9.4), ignoring the case of field names. A configuration that is not JSON, such as the name
// of a file, is broken only if it contains the plugin's type.
func readConfig(config string) []attachedRange {
	var root any
	if err := json.Unmarshal([]byte(config), &root); err != nil {
		if strings.Contains(config, pluginType) {
			return brokenRanges(config, err)
		}
		return nil
	}
	var all []attachedRange
	for _, section := range sections(root) {
		data, _ := json.Marshal(section) // it was JSON
		var c ipamConfig
		if err := json.Unmarshal(data, &c); err != nil {
			all = append(all, brokenRanges(string(data), err)...)
			continue
		}
		all = append(all, c.read()...)
	}
	return all
}

// withoutRange says why pods get no address through an attachment in which readConfig finds no range,
// and whether they may get one all the same.
func withoutRange(config string) (says string, unsure bool) {
	var root map[string]any
	switch err := json.Unmarshal([]byte(config), &root); {
	case config == "":
		return "its configuration is in a file on the nodes, which ip-reaper does not see", true
	case err != nil:
		return "its configuration cannot be read", true
	case len(sections(root)) > 0:
		return "it uses Whereabouts without a range, so its pods get no address unless a file on the nodes has one", true
	}
	plugin := root["ipam"]
	if list, ok := root["plugins"].([]any); ok && len(list) > 0 {
		first, _ := list[0].(map[string]any)
		plugin = first["ipam"]
	}
	if fields, _ := plugin.(map[string]any); fields["type"] != nil {
		return fmt.Sprintf("its addresses come from the IPAM plugin %.80q, not from a store of the cluster that ip-reaper reads", fields["type"]), false
	}
	return "it has no IPAM plugin, so its pods get no address", false
}

// escapedSlashes are the ways in which JSON may write a slash.
var escapedSlashes = strings.NewReplacer(`\/`, "/", `\u002f`, "/", `\u002F`, "/")

// brokenRanges returns every range in a text that cannot be decoded. The text may be about any
// of them, but no other. If it has none, the one that is returned only carries the error.
func brokenRanges(text string, err error) []attachedRange {
	sliced := strings.Contains(strings.ToLower(text), "node_slice_size")
	text = escapedSlashes.Replace(text)
	var all []attachedRange
	known := make(map[netip.Prefix]bool)
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF.:/-", r) }) {
		if from := rangeOf(word); from.IsValid() && !known[from] {
			known[from] = true
			all = append(all, attachedRange{from: from, anyNetwork: true, sliced: sliced, broken: err})
		}
	}
	if len(all) == 0 {
		return []attachedRange{{broken: err}}
	}
	return all
}

// read returns the ranges of the section. The plugin treats a range next to ipRanges as one of
// them, with its own exclude. Without a valid range, it gives no address, and what it excludes
// means nothing. One broken exclude breaks every ADD.
func (c ipamConfig) read() []attachedRange {
	var all []attachedRange
	var broken error
	for _, one := range append(c.Ranges, c.rangeConfig) {
		r := attachedRange{network: c.Network, sliced: c.NodeSliceSize != "", from: rangeOf(one.Range)}
		if !r.from.IsValid() {
			continue
		}
		spans := make([]ipam.Span, 0, len(one.Exclude))
		for _, text := range one.Exclude {
			excluded, err := parseExclude(text)
			if err != nil {
				broken = fmt.Errorf("exclude: %w", err)
			}
			spans = append(spans, excluded)
		}
		r.exclude = ipam.NewSpans(spans...)
		r.first, r.last = one.bounds()
		all = append(all, r)
	}
	if broken != nil {
		for i := range all {
			r := &all[i]
			r.broken, r.first, r.last = broken, netip.Addr{}, netip.Addr{}
		}
	}
	return all
}

// bounds returns the first and the last address that the plugin gives from a range. Both are
// invalid if it gives none, or may read the range or a bound differently.
func (c rangeConfig) bounds() (first, last netip.Addr) {
	text, start, end := c.Range, c.Start, c.End
	if from, cidr, ok := strings.Cut(text, "-"); ok {
		address, _, _ := strings.Cut(cidr, "/")
		text, start, end = cidr, from, address // as LoadIPAMConfig takes it
	}
	plain, err := netip.ParsePrefix(text)
	startIP, startOK := parseBound(start)
	endIP, endOK := parseBound(end)
	if err != nil || plain.Addr().Is4In6() || !startOK || !endOK {
		return netip.Addr{}, netip.Addr{}
	}
	subnet := net.IPNet{IP: plain.Masked().Addr().AsSlice(), Mask: net.CIDRMask(plain.Bits(), plain.Addr().BitLen())}
	low, high, err := iphelpers.GetIPRange(subnet, startIP, endIP)
	if err != nil {
		return netip.Addr{}, netip.Addr{} // a range of fewer than four addresses gives none
	}
	first, _ = netip.AddrFromSlice(low)
	last, _ = netip.AddrFromSlice(high)
	return first.Unmap(), last.Unmap()
}

// parseBound parses an address. An empty text is no bound. It reports false for a text that the
// plugin may read differently.
func parseBound(text string) (net.IP, bool) {
	if text == "" {
		return nil, true
	}
	ip := net.ParseIP(text)
	return ip, ip != nil
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

// rangeOf parses a range, written as a CIDR or as first-CIDR, as LoadIPAMConfig does. It
// returns an invalid prefix if the text is not a range.
func rangeOf(text string) netip.Prefix {
	if _, cidr, ok := strings.Cut(text, "-"); ok {
		text = cidr
	}
	_, subnet, err := netutils.ParseCIDRSloppy(text)
	if err != nil {
		return netip.Prefix{}
	}
	prefix, err := netip.ParsePrefix(subnet.String())
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}

// parseExclude parses a CIDR or an address, like parseExcludedRange in the plugin's
// pkg/allocate. If the plugin cannot parse an exclude, it allocates no address at all. Like
// package net, it takes a network of IPv4 in IPv6 as IPv4 only if all of it is.
func parseExclude(text string) (ipam.Span, error) {
	_, excluded, err := net.ParseCIDR(text)
	if err != nil {
		ip := net.ParseIP(text)
		if ip == nil {
			return ipam.Span{}, fmt.Errorf("%q is neither an address nor a CIDR", text)
		}
		excluded = &net.IPNet{IP: ip, Mask: net.CIDRMask(128, 128)}
	}
	prefix, err := netip.ParsePrefix(excluded.String())
	if err != nil {
		return ipam.Span{}, err
	}
	return ipam.SpanOf(prefix), nil
}
