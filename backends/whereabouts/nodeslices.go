package whereabouts

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A slicePool is a NodeSlicePool: a range that is split into a slice for each node. Its name is
// the network_name, or else the name of the CNI network (getNodeSliceName in
// pkg/storage/kubernetes).
type slicePool struct {
	object
	from   netip.Prefix
	slices []netip.Prefix  // including those that no node has yet
	nodes  map[string]bool // that have a slice now
}

func (s *survey) readSlices(items []json.RawMessage) {
	for _, item := range items {
		p, err := readSlicePool(item)
		if err != nil {
			s.blind = true
			s.errs = append(s.errs, fmt.Errorf("%s %s: %w", sliceKind, p.pool(), err))
			continue
		}
		s.slices = append(s.slices, p)
	}
}

// readSlicePool decodes a NodeSlicePool. With an error, it returns the object as far as
// it could be decoded.
func readSlicePool(data json.RawMessage) (slicePool, error) {
	var stored struct {
		object
		Spec struct {
			Range string `json:"range"`
		} `json:"spec"`
		Status struct {
			Allocations []struct {
				Node  string `json:"nodeName"`
				Range string `json:"sliceRange"`
			} `json:"allocations"`
		} `json:"status"`
	}
	err := kube.Decode(data, &stored)
	p := slicePool{object: stored.object}
	if err != nil {
		return p, fmt.Errorf("decode: %w", err)
	}
	if p.from, err = netip.ParsePrefix(stored.Spec.Range); err != nil {
		return p, fmt.Errorf("spec.range: %w", err)
	}
	p.nodes = make(map[string]bool)
	for _, a := range stored.Status.Allocations {
		slice, err := netip.ParsePrefix(a.Range)
		if err != nil {
			return p, fmt.Errorf("status.allocations: %w", err)
		}
		p.slices = append(p.slices, asRange(slice))
		if a.Node != "" {
			p.nodes[a.Node] = true
		}
	}
	return p, nil
}

// sliced returns the NodeSlicePools as networks, with the same indices.
func (s *survey) sliced() []ipam.Network {
	var all []ipam.Network
	for _, p := range s.slices {
		var usable ipam.Spans
		for _, slice := range p.slices {
			usable = append(usable, handedOut(slice)...)
		}
		n := ipam.Network{Name: p.pool(), Range: asRange(p.from), Known: true, Usable: ipam.NewSpans(usable...)}
		for _, r := range s.ranges {
			if r.sliced && r.from == n.Range {
				n.Attachments = append(n.Attachments, r.attachment)
			}
		}
		all = append(all, n)
	}
	return all
}

// sliceOf returns the index of the NodeSlicePool that the pool is a slice of, or -1. The name
// of a slice's pool contains the node, and the network_name if there is one. A NodeSlicePool of
// that name wins over others.
func (s *survey) sliceOf(p ipam.Pool) int {
	found := -1
	namespace, _ := splitPool(p.Name)
	for i, of := range s.slices {
		switch {
		case p.Network == unnamed || of.Metadata.Namespace != namespace || !slices.Contains(of.slices, asRange(p.Range)):
		case strings.HasPrefix(p.Network, of.Metadata.Name+"-"):
			return i
		case found < 0:
			found = i
		}
	}
	return found
}

// nodeOf returns the node whose slice an IPPool is: empty if it is none, or if that is not certain.
// The plugin names the pool of a slice NETWORK-NODE-RANGE, and the NodeSlicePool after the network, or
// NODE-RANGE without a network_name (IPPoolName in pkg/storage/kubernetes of v0.9.4). The node whose
// slice it is now may be another one: a node that is gone leaves the pool, and its slice to others.
//
// A name that can be read in two ways proves nothing. Without a network_name, any network may be
// called like the node, so the node must have a slice now. Nor does the name prove anything if an
// attachment gives out addresses of that range in a network of that name, without slices, or if the
// pool is older than the NodeSlicePool: tenants write attachments, for which NodeSlicePools are made.
func (s *survey) nodeOf(p ipPool) string {
	at := p.place()
	if s.blind || at.network == unnamed || at.network == "" {
		return ""
	}
	var nodes []string
	for _, of := range s.slices {
		older := p.Metadata.CreationTimestamp.Time.Before(of.Metadata.CreationTimestamp.Time)
		if older || of.Metadata.Namespace != p.Metadata.Namespace || !slices.Contains(of.slices, at.in) {
			continue
		}
		if of.nodes[at.network] {
			nodes = append(nodes, at.network)
		}
		if node, ok := strings.CutPrefix(at.network, of.Metadata.Name+"-"); ok {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	whole := func(r attachedRange) bool { return !r.sliced && r.mayBeOf(at) }
	if len(nodes) != 1 || slices.ContainsFunc(s.ranges, whole) {
		return ""
	}
	return nodes[0]
}
