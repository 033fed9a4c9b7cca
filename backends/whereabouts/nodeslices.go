package whereabouts

import (
	"cmp"
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
	slices []netip.Prefix // including those that no node has yet
	broken error          // why it cannot be decoded; nil if it can
}

// take adds NodeSlicePools to what is known.
func (s *survey) take(pools []slicePool) {
	for _, p := range pools {
		if p.broken != nil {
			s.blind = true
			s.errs = append(s.errs, fmt.Errorf("%s %s: %w", sliceKind, p.pool(), p.broken))
			continue
		}
		s.slices = append(s.slices, p)
	}
}

// readSlicePool decodes a NodeSlicePool.
func readSlicePool(data json.RawMessage) slicePool {
	var stored struct {
		object
		Spec struct {
			Range string `json:"range"`
		} `json:"spec"`
		Status struct {
			Allocations []struct {
				Range string `json:"sliceRange"`
			} `json:"allocations"`
		} `json:"status"`
	}
	err := kube.Decode(data, &stored)
	p := slicePool{object: stored.object}
	if err != nil {
		p.broken = fmt.Errorf("decode: %w", err)
		return p
	}
	if p.from, err = netip.ParsePrefix(stored.Spec.Range); err != nil {
		p.broken = fmt.Errorf("spec.range: %w", err)
	}
	for _, a := range stored.Status.Allocations {
		slice, err := netip.ParsePrefix(a.Range)
		if err != nil {
			p.broken = cmp.Or(p.broken, fmt.Errorf("status.allocations: %w", err))
		}
		p.slices = append(p.slices, asRange(slice))
	}
	return p
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
