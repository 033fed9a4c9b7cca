package plugin

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Range is one range of a network that has several.
type Range struct {
	Range      string   `json:"range"` // a CIDR
	RangeStart string   `json:"range_start,omitempty"`
	RangeEnd   string   `json:"range_end,omitempty"`
	Exclude    []string `json:"exclude,omitempty"`
}

// A Network is the configuration of a network as in its attachment definition. A field with the
// zero value is left out, so the plugin's default applies.
type Network struct {
	Name        string // of the CNI configuration; "net" if empty
	Range       string // a CIDR; may be empty if there are Ranges
	RangeStart  string
	RangeEnd    string
	Exclude     []string
	Ranges      []Range // the pod gets an address of each, after that of Range
	NetworkName string  // a separate network, whose addresses may overlap others'

	// DisableOverlapping makes the plugin keep no overlapping-range reservations. By default it
	// keeps one for each address.
	DisableOverlapping bool

	// RetryPeriod is how long the plugin waits before it asks again for a lease that another holds,
	// in whole milliseconds. Its default is half a second; below a fifth of a second it runs into
	// its own request limit.
	RetryPeriod time.Duration

	// NodeSliceSize, such as "/28", makes each node allocate from its own pool, which a
	// NodeSlicePool names; Node is where the plugin then thinks it runs.
	NodeSliceSize string
	Node          string
}

// config returns the plugin's standard input.
func (n Network) config(kubeconfig, flatFile, logFile string) ([]byte, error) {
	name := n.Name
	if name == "" {
		name = "net"
	}
	ipam := map[string]any{
		"type":                      "whereabouts",
		"kubernetes":                map[string]string{"kubeconfig": kubeconfig},
		"configuration_path":        flatFile,
		"log_file":                  logFile,
		"log_level":                 "debug",
		"enable_overlapping_ranges": !n.DisableOverlapping,
	}
	for key, value := range map[string]string{
		"range":           n.Range,
		"range_start":     n.RangeStart,
		"range_end":       n.RangeEnd,
		"network_name":    n.NetworkName,
		"node_slice_size": n.NodeSliceSize,
	} {
		if value != "" {
			ipam[key] = value
		}
	}
	if len(n.Exclude) > 0 {
		ipam["exclude"] = n.Exclude
	}
	if len(n.Ranges) > 0 {
		ipam["ipRanges"] = n.Ranges
	}
	if n.RetryPeriod > 0 {
		ipam["leader_retry_period"] = n.RetryPeriod.Milliseconds()
	}
	text, err := json.Marshal(map[string]any{
		"cniVersion": "1.0.0", "name": name, "type": "macvlan", "ipam": ipam,
	})
	if err != nil {
		return nil, fmt.Errorf("configure network %s: %w", name, err)
	}
	return text, nil
}
