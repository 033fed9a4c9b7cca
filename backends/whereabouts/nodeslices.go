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

// A slicePool is a NodeSlicePool: a range of which each node has a slice. Its name is the
// network_name, or that of the CNI network if it has none (getNodeSliceName in
// pkg/storage/kubernetes).
type slicePool struct {
	object
	from   netip.Prefix
	slices []netip.Prefix // with those that no node has yet
}

// readSlices adds NodeSlicePools.
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
	var p slicePool
	if err := kube.Decode(data, &p.object); err != nil {
		return p, fmt.Errorf("decode: %w", err)
	}
	var fields struct {
		Spec struct {
			Range string `json:"range"`
		} `json:"spec"`
		Status struct {
			Allocations []struct {
				Range string `json:"sliceRange"`
			} `json:"allocations"`
		} `json:"status"`
	}
	if err := kube.Decode(data, &fields); err != nil {
		return p, fmt.Errorf("decode: %w", err)
	}
	from, err := netip.ParsePrefix(fields.Spec.Range)
	if err != nil {
		return p, fmt.Errorf("spec.range: %w", err)
	}
	p.from = asRange(from)
	for _, a := range fields.Status.Allocations {
		slice, err := netip.ParsePrefix(a.Range)
		if err != nil {
			return p, fmt.Errorf("status.allocations: %w", err)
		}
		p.slices = append(p.slices, asRange(slice))
	}
	return p, nil
}

// sliced returns the NodeSlicePools as networks. If some are not known, the ranges of
// sliced attachments are networks of unknown capacity beside them.
func (s *survey) sliced() []ipam.Network {
	var all []ipam.Network
	for _, p := range s.slices {
		var usable ipam.Spans
		for _, slice := range p.slices {
			usable = append(usable, handedOut(slice)...)
		}
		all = append(all, ipam.Network{Name: p.pool(), Range: p.from, Known: true, Usable: ipam.NewSpans(usable...)})
	}
	if !s.blind {
		return all
	}
	named := make(map[string]bool)
	for _, r := range s.ranges {
		if !r.sliced || !r.from.IsValid() {
			continue
		}
		if name := nameOf(place{r.network, r.from}); !named[name] {
			named[name] = true
			all = append(all, ipam.Network{Name: name, Range: r.from})
		}
	}
	return all
}

// sliceOf returns the index of the network of which the pool is a slice, or -1. The name
// of a slice's pool has the node. It also has the network_name, if there is one, and a
// network that has it goes before others.
func (s *survey) sliceOf(p ipam.Pool, networks []ipam.Network) int {
	found := -1
	if p.Network == unnamed {
		return found
	}
	namespace, _ := splitPool(p.Name)
	for i, n := range networks {
		name := ""
		if i < len(s.slices) {
			of := s.slices[i]
			if of.Metadata.Namespace != namespace || !slices.Contains(of.slices, asRange(p.Range)) {
				continue
			}
			name = of.Metadata.Name
		} else if !n.Range.Overlaps(p.Range) || n.Range.Bits() > p.Range.Bits() {
			continue
		}
		if name != "" && strings.HasPrefix(p.Network, name+"-") {
			return i
		}
		if found < 0 {
			found = i
		}
	}
	return found
}
