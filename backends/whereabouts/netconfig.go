package whereabouts

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/iphelpers"
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
			return brokenRanges(err)
		}
		return nil
	}
	var all []attachedRange
	for _, section := range sections(root) {
		data, err := json.Marshal(section)
		if err != nil {
			return brokenRanges(err)
		}
		var ipam ipamConfig
		if err := json.Unmarshal(data, &ipam); err != nil {
			return brokenRanges(err)
		}
		all = append(all, ipam.read()...)
	}
	return all
}

// brokenRanges returns a range that may be any one, since no more can be told.
func brokenRanges(err error) []attachedRange { return []attachedRange{{broken: err}} }

// read decodes the section. The plugin treats a range beside ipRanges as one of
// them, with an exclude of its own. One field that is broken breaks every ADD, so no
// range of that section gives addresses.
func (c ipamConfig) read() []attachedRange {
	var network string
	networkErr := decodeField("network_name", c.Network, &network)
	var configs []rangeConfig
	rangesErr := decodeField("ipRanges", c.Ranges, &configs)

	var all []attachedRange
	if rangesErr != nil {
		all = append(all, attachedRange{broken: rangesErr})
	}
	sure := networkErr == nil && rangesErr == nil && !c.slicesNodes()
	for _, config := range append(configs, c.rangeConfig) {
		r := config.read()
		if networkErr != nil && r.broken == nil {
			r.broken = networkErr
		}
		sure = sure && r.broken == nil
		all = append(all, r)
	}
	for i := range all {
		all[i].network = network
		if !sure {
			all[i].first, all[i].last = netip.Addr{}, netip.Addr{}
		}
	}
	return all
}

// slicesNodes reports whether each node gets a slice of the range. The name of a
// node cannot be told from a network_name, so it is not sure of which pools such a
// range is.
func (c ipamConfig) slicesNodes() bool {
	var size string
	return decodeField("node_slice_size", c.NodeSliceSize, &size) != nil || size != ""
}

// read decodes one range.
func (c rangeConfig) read() attachedRange {
	var r attachedRange
	var text string
	if err := decodeField("range", c.Range, &text); err != nil {
		r.broken = err
	}
	r.from = rangeOf(text)
	var excludes []string
	if err := decodeField("exclude", c.Exclude, &excludes); err != nil {
		r.broken = err
	}
	for _, text := range excludes {
		excluded, err := parseExclude(text)
		if err != nil {
			r.broken = fmt.Errorf("exclude: %w", err)
			break
		}
		r.exclude = append(r.exclude, excluded)
	}
	if r.broken == nil {
		r.first, r.last = c.bounds(text)
	}
	return r
}

// bounds returns the first and the last address that the plugin gives of a range. It
// returns addresses that are not valid if the range or a bound is not certain.
func (c rangeConfig) bounds(text string) (first, last netip.Addr) {
	var start, end string
	if decodeField("range_start", c.Start, &start) != nil || decodeField("range_end", c.End, &end) != nil {
		return first, last
	}
	if from, cidr, ok := strings.Cut(text, "-"); ok {
		address, _, _ := strings.Cut(cidr, "/")
		text, start, end = cidr, from, address // as LoadIPAMConfig takes it
	}
	_, subnet, err := net.ParseCIDR(text)
	startIP, startOK := parseBound(start)
	endIP, endOK := parseBound(end)
	if err != nil || !startOK || !endOK || !rangeOf(text).IsValid() {
		return first, last
	}
	low, high, err := iphelpers.GetIPRange(*subnet, startIP, endIP)
	if err != nil {
		return first, last // a range of fewer than four addresses gives none
	}
	first, _ = netip.AddrFromSlice(low)
	last, _ = netip.AddrFromSlice(high)
	return first.Unmap(), last.Unmap()
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
