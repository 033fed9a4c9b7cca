package hostlocal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A conf is one network configuration: a list of plugins, or a single one. It has only the
// fields that say where the plugin keeps addresses.
type conf struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Plugins []conf   `json:"plugins"`
	IPAM    ipamConf `json:"ipam"`

	// Nerdctl puts its networks into the runtime's folder, with its own IDs.
	NerdctlID     json.RawMessage `json:"nerdctlID"`
	NerdctlLabels json.RawMessage `json:"nerdctlLabels"`

	// Podman marks its networks by the name of the bridge, and by labels.
	Bridge string `json:"bridge"`
	Args   struct {
		PodmanLabels json.RawMessage `json:"podman_labels"`
	} `json:"args"`

	Enabled json.RawMessage `json:"enabled"` // of egress-cni: a string

	Delegate        *conf    `json:"delegate"`        // of flannel
	Delegates       []conf   `json:"delegates"`       // of Multus
	ClusterNetwork  string   `json:"clusterNetwork"`  // of Multus: a name or a file
	DefaultNetworks []string `json:"defaultNetworks"` // of Multus: names or files

	file string // name without its folder
}

// ipamConf is the part of a configuration about addresses. Older configurations have one range,
// in the fields of this part itself.
type ipamConf struct {
	Type    string `json:"type"`
	DataDir string `json:"dataDir"`
	span
	Ranges [][]span `json:"ranges"`
}

// A span is a range from which the plugin allocates.
type span struct {
	Subnet     string `json:"subnet"`
	RangeStart string `json:"rangeStart"`
	RangeEnd   string `json:"rangeEnd"`
	Gateway    string `json:"gateway"`
}

// hostLocal is the name of the plugin.
const hostLocal = "host-local"

// maxConf is the largest network configuration that is read, in bytes.
const maxConf = 1 << 20

// readConf reads and decodes a configuration. It may be a symbolic link, which a runtime follows.
func readConf(name string) (conf, error) {
	c := conf{file: path.Base(name)}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return c, err
	case !info.Mode().IsRegular():
		return c, fmt.Errorf("it is %s, not a regular file", kindOf(info.Mode()))
	case info.Size() > maxConf:
		return c, fmt.Errorf("it has %d bytes, but at most %d are read", info.Size(), maxConf)
	}
	data, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err == nil && c.Name == "" {
		err = errors.New("the configuration has no name")
	}
	return c, err
}

// confEnds are the endings of the files that a runtime reads as configurations.
var confEnds = []string{".conf", ".conflist", ".json"}

// stranger names the program, other than a container runtime, whose network it is; empty if it
// may be the runtime's.
func (c conf) stranger() string {
	switch {
	case len(c.NerdctlID)+len(c.NerdctlLabels) > 0:
		return "nerdctl"
	case strings.Contains(c.file, "podman") || strings.HasPrefix(c.Name, "podman") ||
		strings.HasPrefix(c.Bridge, "cni-podman") || len(c.Args.PodmanLabels) > 0:
		return "podman"
	}
	for _, p := range c.Plugins {
		if program := p.stranger(); program != "" {
			return program
		}
	}
	return ""
}

// A network is a network that a configuration describes.
type network struct {
	name    string
	dataDir string // empty if the configuration does not say
	ranges  []span // of host-local
	local   bool   // host-local gives its addresses
	idle    bool   // the configuration says that no address comes from there
	flannel bool   // flannel chooses the ranges
}

// networks returns the networks of a configuration, or of a part of one, including those it
// delegates to. A part without a name has the one given. byName finds another configuration.
func (c conf) networks(name string, byName func(nameOrFile string) (conf, bool), depth int) []network {
	const deepest = 8 // Multus may name a configuration that names Multus
	if depth > deepest {
		return nil
	}
	name = cmp.Or(c.Name, name)
	own := network{name: name, flannel: c.Type == "flannel"}
	if c.IPAM.Type == hostLocal {
		own.dataDir, own.ranges = c.IPAM.DataDir, c.IPAM.spans()
		own.local, own.idle = true, c.idle()
	}
	all := []network{own}
	for _, p := range c.Plugins {
		p.Name = "" // libcni gives every plugin the name of the list
		all = append(all, p.networks(name, byName, depth+1)...)
	}
	if c.Delegate != nil {
		to := *c.Delegate
		to.Name = "" // flannel gives it its own
		if to.IPAM.Type == "" {
			to.IPAM.Type, to.IPAM.DataDir = hostLocal, c.IPAM.DataDir
		}
		all = append(all, to.networks(name, byName, depth+1)...)
	}
	for _, to := range c.Delegates {
		all = append(all, to.networks(name, byName, depth+1)...)
	}
	for _, other := range append(c.DefaultNetworks, c.ClusterNetwork) {
		if to, ok := byName(other); ok && other != "" {
			all = append(all, to.networks(to.Name, byName, depth+1)...)
		}
	}
	return all
}

// idle reports whether the plugin is in the list but does nothing. The list of the AWS VPC CNI
// always has egress-cni, which never calls host-local unless it is enabled.
func (c conf) idle() bool { return c.Type == "egress-cni" && string(c.Enabled) == `"false"` }

// spans returns the ranges in the older form and in the current one.
func (p ipamConf) spans() []span {
	var all []span
	if p.Subnet != "" {
		all = append(all, p.span)
	}
	for _, set := range p.Ranges {
		all = append(all, set...)
	}
	return all
}

// addresses returns the subnet of a range, and the addresses in it that the plugin gives to
// pods. It reports false if the configuration does not have them: some have a word such as
// usePodCidr, which another plugin replaces with the subnet.
func (s span) addresses() (netip.Prefix, ipam.Spans, bool) {
	subnet, err := netip.ParsePrefix(s.Subnet)
	if err != nil || subnet.Addr().Is4In6() {
		return netip.Prefix{}, nil, false
	}
	subnet = subnet.Masked()
	whole := ipam.SpanOf(subnet)
	first, last := whole.First.Next(), whole.Last
	if subnet.Addr().Is4() {
		last = last.Prev() // the broadcast address
	}
	gateway := first
	for _, set := range []struct {
		text  string
		value *netip.Addr
	}{{s.RangeStart, &first}, {s.RangeEnd, &last}, {s.Gateway, &gateway}} {
		if set.text == "" {
			continue
		}
		if *set.value, err = netip.ParseAddr(set.text); err != nil {
			return netip.Prefix{}, nil, false
		}
	}
	usable := ipam.NewSpans(ipam.Span{First: first, Last: last})
	return subnet, usable.Without(ipam.NewSpans(ipam.Span{First: gateway, Last: gateway})), true
}

// size returns the first range of the network, IPv4 before IPv6, with the addresses of all
// ranges of its family. It reports false if they are unknown.
func (n network) size() (first netip.Prefix, usable ipam.Spans, ok bool) {
	var spans []ipam.Span
	for _, s := range n.ranges {
		subnet, some, ok := s.addresses()
		switch {
		case !ok:
			return netip.Prefix{}, nil, false
		case !first.IsValid() || subnet.Addr().Is4() && first.Addr().Is6():
			first, spans = subnet, some
		case subnet.Addr().Is4() == first.Addr().Is4():
			spans = append(spans, some...)
		}
	}
	return first, ipam.NewSpans(spans...), first.IsValid()
}
