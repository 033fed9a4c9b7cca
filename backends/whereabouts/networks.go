package whereabouts

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Survey implements ipam.Surveyor. A network is one range of one network_name, from which the
// plugin gives each address that any attachment hands out. With node slices, it is a
// NodeSlicePool, in which each node has its own pool.
//
// The plugin gives neither the first nor the last address of a range, nor those that the
// attachment excludes; it does give a gateway's (IterateForAssignment in pkg/allocate of
// v0.9.4). In a slice it ignores what the attachment excludes, because it makes a new range
// (IPManagementKubernetesUpdate in pkg/storage/kubernetes).
func (b *Pools) Survey(_ context.Context, pools []ipam.Pool) ([]ipam.Network, error) {
	b.mu.Lock()
	s := b.last
	b.mu.Unlock()
	return s.networks(pools), errors.Join(s.errs...)
}

// A survey is what is known about the ranges that the plugin hands out.
type survey struct {
	ranges []attachedRange
	slices []slicePool
	blind  bool // some NodeSlicePools are unknown
	errs   []error
}

// A handout is what the attachments of one place hand out together.
type handout struct {
	spans  []ipam.Span // of any attachment, in any order
	sound  bool        // the plugin accepts one of the attachments
	unsure bool        // the plugin may read one of them differently
	pools  []string

	attachments []string
}

// networks returns the networks of the pools, and those without a pool: first those with
// slices, then the others by name. A pool whose range no attachment hands out has its own
// network, which is not narrowed: the plugin's configuration may be in a file on the nodes.
func (s *survey) networks(pools []ipam.Pool) []ipam.Network {
	places := make(map[place]*handout)
	for _, r := range s.ranges {
		if !r.from.IsValid() || r.sliced || r.anyNetwork {
			continue
		}
		at := place{cmp.Or(r.network, unnamed), r.from}
		if places[at] == nil {
			places[at] = new(handout)
		}
		places[at].add(r)
	}
	all := s.sliced()
	for _, p := range pools {
		if !p.Range.IsValid() {
			continue
		}
		at := place{p.Network, asRange(p.Range)}
		if places[at] == nil {
			if i := s.sliceOf(p); i >= 0 {
				all[i].Pools = append(all[i].Pools, p.Name)
				continue
			}
			places[at] = &handout{spans: handedOut(at.in), sound: !s.mayNarrow(at)}
		}
		places[at].pools = append(places[at].pools, p.Name)
	}
	for _, at := range slices.SortedFunc(maps.Keys(places), comparePlaces) {
		h := places[at]
		n := ipam.Network{
			Name: nameOf(at), Range: at.in, Pools: h.pools, Unique: at.network,
			Known: h.sound && !h.unsure, Usable: ipam.NewSpans(h.spans...), Attachments: h.attachments,
		}
		if hostBits(at.in) < 2 {
			n.Closed = "a range of fewer than four addresses has none for pods"
		}
		all = append(all, n)
	}
	return all
}

// mayNarrow reports whether a pool without an attachment may be an unknown slice, or belong to
// an attachment that cannot be decoded.
func (s *survey) mayNarrow(at place) bool {
	return s.blind && at.network != unnamed ||
		slices.ContainsFunc(s.ranges, func(r attachedRange) bool { return r.broken != nil && r.mayBeOf(at) })
}

// add adds what the plugin gives for one range of an attachment. A tenant may write tens of
// thousands of ranges, so they are merged once, at the end.
func (h *handout) add(r attachedRange) {
	h.attachments = append(h.attachments, r.attachment)
	switch {
	case r.broken != nil: // the plugin refuses it
	case !r.first.IsValid() && hostBits(r.from) >= 2:
		h.unsure = true
	default:
		h.sound = true
		h.spans = append(h.spans, r.gives()...)
	}
}
