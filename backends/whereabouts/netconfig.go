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

// An ipamConfig is the plugin's section of a configuration. Its fields are decoded
// one by one, so that a broken one leaves the others.
type ipamConfig struct {
	rangeConfig
	Ranges        json.RawMessage `json:"ipRanges"`
	Network       json.RawMessage `json:"network_name"`
	NodeSliceSize json.RawMessage `json:"node_slice_size"`
}

// A rangeConfig is the plugin's RangeConfiguration.
type rangeConfig struct {
	Range   json.RawMessage `json:"range"`
	Exclude json.RawMessage `json:"exclude"`
	Start   json.RawMessage `json:"range_start"`
	End     json.RawMessage `json:"range_end"`
}

// readConfig returns the ranges that the configuration of a network has for the
// plugin. The configuration may be of one CNI plugin, of a list, or of plugins
// inside others: readConfig takes every object with the plugin's type. It decodes as
// the plugin does (pkg/config of v0.9.4), which ignores the case of field names. A
// configuration that is no JSON, such as the name of a file, is broken only if it
// contains the plugin's type.
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
		data, err := json.Marshal(section)
		if err != nil {
			return brokenRanges(config, err)
		}
		var ipam ipamConfig
		if err := json.Unmarshal(data, &ipam); err != nil {
			return brokenRanges(string(data), err)
		}
		all = append(all, ipam.read()...)
	}
	return all
}

// brokenRanges returns every range that stands in a text which cannot be decoded. The
// text may be of any of them, and of no other. If it has none, the one that is
// returned only tells the error.
func brokenRanges(text string, err error) []attachedRange {
	var all []attachedRange
	known := make(map[netip.Prefix]bool)
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF.:/-", r) }) {
		if from := rangeOf(word); from.IsValid() && !known[from] {
			known[from] = true
			all = append(all, attachedRange{from: from, anyNetwork: true, broken: err})
		}
	}
	if len(all) == 0 {
		return []attachedRange{{broken: err}}
	}
	return all
}

// read decodes the section. The plugin treats a range beside ipRanges as one of
// them, with an exclude of its own; without a range, it ignores that exclude. One
// field that is broken breaks every ADD, so no range of that section gives addresses.
func (c ipamConfig) read() []attachedRange {
	var network string
	networkErr := decodeField("network_name", c.Network, &network)
	var configs []rangeConfig
	rangesErr := decodeField("ipRanges", c.Ranges, &configs)
	var slice string // each node gets a part of the range of this size
	sliceErr := decodeField("node_slice_size", c.NodeSliceSize, &slice)

	var all []attachedRange
	if rangesErr != nil {
		all = brokenRanges(string(c.Ranges), rangesErr)
	}
	sure := networkErr == nil && rangesErr == nil && sliceErr == nil
	for _, config := range append(configs, c.rangeConfig) {
		ranges := config.read()
		all = append(all, ranges...)
		for _, r := range ranges {
			sure = sure && r.broken == nil
		}
	}
	for i := range all {
		r := &all[i]
		r.network, r.anyNetwork = network, networkErr != nil
		r.slice, r.sliced = slice, sliceErr != nil || slice != ""
		if r.broken == nil {
			r.broken = networkErr
		}
		if !sure {
			r.first, r.last, r.refused = netip.Addr{}, netip.Addr{}, true
		}
	}
	return all
}

// read decodes one range. It returns none if there is no range, or if the text is
// none: then the plugin gives no address for it, and what it excludes means nothing.
func (c rangeConfig) read() []attachedRange {
	var text string
	if err := decodeField("range", c.Range, &text); err != nil {
		return brokenRanges(string(c.Range), err)
	}
	r := attachedRange{from: rangeOf(text)}
	if !r.from.IsValid() {
		return nil
	}
	var excludes []string
	if err := decodeField("exclude", c.Exclude, &excludes); err != nil {
		r.broken = err
	}
	spans := make([]ipam.Span, 0, len(excludes))
	for _, text := range excludes {
		excluded, err := parseExclude(text)
		if err != nil {
			r.broken = fmt.Errorf("exclude: %w", err)
			break
		}
		spans = append(spans, excluded)
	}
	r.exclude = ipam.NewSpans(spans...)
	if r.broken == nil {
		r.first, r.last, r.unsure = c.bounds(text)
	}
	return []attachedRange{r}
}

// bounds returns the first and the last address that the plugin gives of a range. It
// returns addresses that are not valid if the plugin gives none, or if the range or a
// bound is not certain.
func (c rangeConfig) bounds(text string) (first, last netip.Addr, unsure bool) {
	var start, end string
	if decodeField("range_start", c.Start, &start) != nil || decodeField("range_end", c.End, &end) != nil {
		return first, last, true
	}
	if from, cidr, ok := strings.Cut(text, "-"); ok {
		address, _, _ := strings.Cut(cidr, "/")
		text, start, end = cidr, from, address // as LoadIPAMConfig takes it
	}
	plain, err := netip.ParsePrefix(text)
	if err != nil || plain.Addr().Is4In6() {
		return first, last, true // the plugin may read it in another way
	}
	startIP, startOK := parseBound(start)
	endIP, endOK := parseBound(end)
	if !startOK || !endOK {
		return first, last, true
	}
	subnet := net.IPNet{IP: plain.Masked().Addr().AsSlice(), Mask: net.CIDRMask(plain.Bits(), plain.Addr().BitLen())}
	low, high, err := iphelpers.GetIPRange(subnet, startIP, endIP)
	if err != nil {
		return first, last, false // a range of fewer than four addresses gives none
	}
	first, _ = netip.AddrFromSlice(low)
	last, _ = netip.AddrFromSlice(high)
	return first.Unmap(), last.Unmap(), false
}

// parseBound parses an address. An empty text is no bound. It reports false for a
// text that the plugin may read in another way.
func parseBound(text string) (net.IP, bool) {
	if text == "" {
		return nil, true
	}
	ip := net.ParseIP(text)
	return ip, ip != nil
}

// decodeField decodes a field of a configuration. A field that is not there leaves
// into as it is.
func decodeField(name string, data json.RawMessage, into any) error {
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
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

// rangeOf parses a range, written as a CIDR or as first-CIDR, as LoadIPAMConfig does.
// It returns a prefix that is not valid if the text is no range.
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
// pkg/allocate. If the plugin cannot parse an exclude, it allocates no address at
// all. Like package net, it takes a network of IPv4 in IPv6 for one of IPv4 only if all of it
// is.
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
