package whereabouts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
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
	closed []ipam.Network // of the attachments without a range
	unsure []string       // those of them that may have one in a file on the nodes
	slices []slicePool
	nodes  map[string]bool       // that have a slice of some NodeSlicePool now
	whole  map[string]ipam.Spans // what attachments without slices may give, by the networks asked for
	blind  bool                  // some NodeSlicePools are unknown, or all attachments
	unread bool                  // the attachments are unknown
	errs   []error
}

// add adds what is known of an attachment.
func (s *survey) add(a *configuration) {
	for _, r := range a.ranges {
		r.attachment = a.name
		s.ranges = append(s.ranges, r)
	}
	if a.closed != "" {
		s.closed = append(s.closed, ipam.Network{Name: a.name, Closed: a.closed, Attachments: []string{a.name}})
	}
	if a.unsure {
		s.unsure = append(s.unsure, a.name)
	}
}

// listed yields an error for each attachment that cannot be decoded, and then the pools.
func (s *survey) listed(pools iter.Seq2[ipam.Pool, error]) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		told := make(map[string]bool)
		for _, r := range s.ranges {
			if r.broken == nil || told[r.attachment] {
				continue
			}
			told[r.attachment] = true
			if !yield(ipam.Pool{}, &ipam.ObjectError{Object: "network attachment " + r.attachment, Err: r.broken}) {
				return
			}
		}
		pools(yield)
	}
}

// A handout is what the attachments of one place hand out together.
type handout struct {
	spans  []ipam.Span            // of any attachment, in any order
	parts  map[string][]ipam.Span // the same, by attachment
	sound  bool                   // the plugin accepts one of the attachments
	unsure bool                   // the plugin may read one of them differently
	pools  []string

	attachments []string
	withheld    []ipam.Withheld
}

// networks returns the networks of the pools, and those without a pool: first those with
// slices, then the others by name, and then those of attachments that have no range. A pool whose range no attachment hands out has its own
// network, which is not narrowed: the plugin's configuration may be in a file on the nodes.
func (s *survey) networks(pools []ipam.Pool) []ipam.Network {
	places := make(map[place]*handout)
	var loose []attachedRange // which may be of other places than their own
	for _, r := range s.ranges {
		elsewhere := !r.from.IsValid() || r.sliced || r.anyNetwork
		if elsewhere || r.anywhere {
			loose = append(loose, r)
		}
		if elsewhere {
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
		usable := ipam.NewSpans(h.spans...)
		n := ipam.Network{
			Name:        nameOf(at),
			Range:       at.in,
			Pools:       h.pools,
			Unique:      at.network,
			Known:       h.sound && !h.unsure,
			Usable:      usable,
			Parts:       h.differing(usable),
			Withheld:    h.withheld,
			Attachments: h.attachments,
		}
		if len(n.Pools) > 0 && at.network == "" {
			n.Unsure = s.alsoAt(s.ranges, at, n.Attachments)
		} else if len(n.Pools) > 0 {
			n.Unsure = s.alsoAt(loose, at, n.Attachments)
		}
		if hostBits(at.in) < 2 {
			n.Closed = "a range of fewer than four addresses has none for pods"
		}
		all = append(all, n)
	}
	return append(all, s.closed...)
}

// alsoAt returns the attachments of ranges that may be of a place beside those that surely are.
func (s *survey) alsoAt(ranges []attachedRange, at place, sure []string) []string {
	known, also := make(map[string]bool), slices.Clone(s.unsure)
	for _, attachment := range sure {
		known[attachment] = true
	}
	for _, r := range ranges {
		if !known[r.attachment] && (!r.from.IsValid() || r.mayBeOf(at)) {
			known[r.attachment] = true
			also = append(also, r.attachment)
		}
	}
	return also
}

// mayNarrow reports whether a pool without an attachment may be an unknown slice, or belong to
// an attachment that cannot be decoded, or was not listed.
func (s *survey) mayNarrow(at place) bool {
	return s.unread || s.blind && at.network != unnamed ||
		slices.ContainsFunc(s.ranges, func(r attachedRange) bool { return r.broken != nil && r.mayBeOf(at) })
}

// add adds what the plugin gives for one range of an attachment. A tenant may write tens of
// thousands of ranges, so they are merged once, at the end.
func (h *handout) add(r attachedRange) {
	h.attachments = append(h.attachments, r.attachment)
	if len(r.exclude) > 0 {
		h.withheld = append(h.withheld, ipam.Withheld{Addresses: r.exclude, Why: "excluded by the network attachment " + r.attachment})
	}
	switch {
	case r.broken != nil: // the plugin refuses it
	case !r.first.IsValid() && hostBits(r.from) >= 2:
		h.unsure = true
	default:
		h.sound = true
		h.spans = append(h.spans, r.gives()...)
		if h.parts == nil {
			h.parts = make(map[string][]ipam.Span)
		}
		h.parts[r.attachment] = append(h.parts[r.attachment], r.gives()...)
	}
}

// differing returns what each attachment hands out, if some do not hand out the whole.
func (h *handout) differing(whole ipam.Spans) map[string]ipam.Spans {
	parts := make(map[string]ipam.Spans, len(h.parts))
	differ := false
	for attachment, spans := range h.parts {
		parts[attachment] = ipam.NewSpans(spans...)
		differ = differ || !slices.Equal(parts[attachment], whole)
	}
	if !differ {
		return nil
	}
	return parts
}

// A slicePool is a NodeSlicePool: a range that is split into a slice for each node. Its name is
// the network_name, or else the name of the CNI network (getNodeSliceName in
// pkg/storage/kubernetes).
type slicePool struct {
	object
	from   netip.Prefix
	slices []netip.Prefix            // including those that no node has yet
	nodes  map[string]bool           // that have a slice now
	given  map[netip.Prefix][]string // the same, by slice
	broken error                     // why it cannot be decoded; nil if it can
}

// take adds NodeSlicePools to what is known.
func (s *survey) take(pools []slicePool) {
	s.nodes = make(map[string]bool)
	for _, p := range pools {
		if p.broken != nil {
			s.blind = true
			s.errs = append(s.errs, fmt.Errorf("%s %s: %w", sliceKind, p.pool(), p.broken))
			continue
		}
		s.slices = append(s.slices, p)
		maps.Copy(s.nodes, p.nodes)
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
				Node  string `json:"nodeName"`
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
	p.nodes, p.given = make(map[string]bool), make(map[netip.Prefix][]string)
	for _, a := range stored.Status.Allocations {
		slice, err := netip.ParsePrefix(a.Range)
		if err != nil {
			p.broken = cmp.Or(p.broken, fmt.Errorf("status.allocations: %w", err))
		}
		slice = asRange(slice)
		p.slices = append(p.slices, slice)
		if a.Node != "" {
			p.nodes[a.Node] = true
			p.given[slice] = append(p.given[slice], a.Node)
		}
	}
	return p
}

// sliced returns the NodeSlicePools as networks, with the same indices. An attachment without a
// network_name may be of each with its range that no other one names.
func (s *survey) sliced() []ipam.Network {
	var all []ipam.Network
	named := make(map[string]bool)
	for _, r := range s.ranges {
		named[r.network] = named[r.network] || r.sliced && r.network != ""
	}
	for _, p := range s.slices {
		var usable ipam.Spans
		for _, slice := range p.slices {
			usable = append(usable, handedOut(slice)...)
		}
		n := ipam.Network{Name: p.pool(), Range: asRange(p.from), Known: true, Usable: ipam.NewSpans(usable...)}
		for _, r := range s.ranges {
			mayBe := r.network == p.Metadata.Name || r.network == "" && !named[p.Metadata.Name]
			if r.sliced && r.from == n.Range && mayBe {
				n.Attachments = append(n.Attachments, r.attachment)
			}
		}
		n.Unsure = s.alsoAt(s.ranges, place{p.Metadata.Name, n.Range}, n.Attachments)
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
// A name that can be read in two ways proves nothing. The NodeSlicePool of one of them may be gone, or may
// have been made anew since. Without a network_name, any network may be called like the node, so the node
// must have a slice now. Nor does the name prove anything if an attachment gives out addresses of that
// range in a network of that name, without slices, or if the pool is older than the NodeSlicePool: tenants
// write attachments, for which NodeSlicePools are made.
func (s *survey) nodeOf(p ipPool) string {
	at := p.place()
	if s.blind || at.network == unnamed || at.network == "" {
		return ""
	}
	var nodes []string
	for i := range len(at.network) {
		if node := at.network[i+1:]; at.network[i] == '-' && s.nodes[node] {
			nodes = append(nodes, node)
		}
	}
	proved := false
	for _, of := range s.slices {
		if of.Metadata.Namespace != p.Metadata.Namespace || !slices.Contains(of.slices, at.in) {
			continue
		}
		before := len(nodes)
		if of.nodes[at.network] {
			nodes = append(nodes, at.network)
		}
		if node, ok := strings.CutPrefix(at.network, of.Metadata.Name+"-"); ok {
			nodes = append(nodes, node)
		}
		older := p.Metadata.CreationTimestamp.Time.Before(of.Metadata.CreationTimestamp.Time)
		proved = proved || len(nodes) > before && !older
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	whole := func(r attachedRange) bool { return !r.sliced && r.mayBeOf(at) }
	if len(nodes) != 1 || !proved || slices.ContainsFunc(s.ranges, whole) {
		return ""
	}
	return nodes[0]
}
