package whereabouts

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// bindToSlice sets the node of an overlapping reservation, the only allocation of its pool, if it was
// made with an entry in the slice of that node. Then it says that only a pod on that node can adopt it, or
// on another one that has, or had, a slice with the address. beside are the IPPools of its namespace.
//
// An ADD finds a reservation of its own pod if it may give the address: from the slice of its node, or from
// any range without slices of the same network_name. So nothing is set if there may be such a range, or
// if it is not certain in which slice the reservation was made: another slice has an entry of the pod, too, or
// none has, and the reservation may be of a range whose IPPool was deleted.
func (s *survey) bindToSlice(u *ipam.Pool, beside poolsOf) {
	r := &u.Allocations[0]
	if len(s.slices) == 0 || s.blind || beside.doubtful || r.Unreadable != "" || r.Owner.Pod.Namespace == "" {
		return
	}
	listed, err := readToken(r.Token)
	network := networkOf(*r)
	if err != nil || r.UnknownField != "" || claimOf(string(listed.Spec)) != "" || s.mayGiveWhole(network, r.IP) {
		return // a claim and an unknown field count as for an entry
	}
	var with, without []ipPool
	for _, p := range beside.containing(r.IP) {
		prefix, ok := poolPrefix(p.name, p.prefix)
		switch entry, held := p.allocations[keyOf(p.prefix, r.IP)]; {
		case ok && !mayBeOf(prefix, network):
		case !ok || p.node == "" || prefix != sliceName(network, p.node):
			return
		case held && mayName(entry, r.Owner.Pod.String()):
			with = append(with, p)
		default:
			without = append(without, p)
		}
	}
	if len(with) == 0 && len(without) == 1 && !r.Created.Before(without[0].Metadata.CreationTimestamp.Time) {
		with, without = without, nil
	}
	if len(with) != 1 {
		return
	}
	var also []string
	for _, p := range without {
		also = append(also, p.node)
	}
	namespace, _ := splitPool(u.Name)
	for _, of := range s.slices {
		also = append(also, of.nodesFor(namespace, network, r.IP)...)
	}
	slices.Sort(also)
	also = slices.DeleteFunc(slices.Compact(also), func(node string) bool { return node == with[0].node })
	r.Owner.Node, r.AlsoOn, r.Adoption = with[0].node, strings.Join(also, " "), ipam.AdoptedOnNode
}

// mayGiveWhole reports whether an attachment without slices may give the address in the network; the
// unnamed network is empty.
func (s *survey) mayGiveWhole(network string, ip netip.Addr) bool {
	whole, known := s.whole[network]
	if !known {
		var spans []ipam.Span
		for _, r := range s.ranges {
			if !r.sliced && r.mayBeOf(place{network: cmp.Or(network, unnamed)}) {
				spans = append(spans, ipam.SpanOf(r.from))
			}
		}
		if s.whole == nil {
			s.whole = make(map[string]ipam.Spans)
		}
		whole = ipam.NewSpans(spans...)
		s.whole[network] = whole
	}
	return whole.Contains(ip)
}

// nodesFor returns the nodes that now have a slice with the address, if the NodeSlicePool may be that of
// the network; the unnamed network is empty.
func (p slicePool) nodesFor(namespace, network string, ip netip.Addr) []string {
	if p.Metadata.Namespace != namespace || network != "" && network != p.Metadata.Name {
		return nil
	}
	var nodes []string
	for bits := 0; bits <= ip.BitLen(); bits++ {
		within, _ := ip.Prefix(bits) // no error: the length is in bounds
		nodes = append(nodes, p.given[within]...)
	}
	return nodes
}

// sliceName returns what the name of the IPPool of a slice has before its range; the unnamed network is
// empty.
func sliceName(network, node string) string {
	if network == "" {
		return node
	}
	return network + "-" + node
}

// networkOf returns the network in the name of an overlapping reservation; empty for the unnamed one.
func networkOf(r ipam.Allocation) string {
	return strings.TrimSuffix(strings.TrimSuffix(r.Key, normalizeIP(r.IP)), "-")
}

// elsewhere says which IPPool lets a pod find the reservation on other nodes than those that it is bound to,
// as listed. An ADD makes the IPPool before it reads the reservation; so no ADD has, if there is none.
// It is empty for a reservation that is bound to no slice, and if there is no such IPPool.
func (h holder) elsewhere(r ipam.Allocation) string {
	namespace, _ := splitPool(r.Pool)
	network := networkOf(r)
	if r.Adoption != ipam.AdoptedOnNode || h.Metadata.Namespace != namespace || !h.mayBeOf(network) {
		return ""
	}
	if h.broken != nil {
		return fmt.Sprintf("pool %s may have the address, too: %v", h.pool(), h.broken)
	}
	prefix, ok := poolPrefix(h.name, h.prefix)
	bound := ok && slices.ContainsFunc(nodesOf(r), func(node string) bool { return prefix == sliceName(network, node) })
	if bound || !h.contains(r.IP) {
		return ""
	}
	return fmt.Sprintf("pool %s has the address, too", h.pool())
}

// nodesOf returns the nodes on which a pod can adopt a reservation, as listed.
func nodesOf(r ipam.Allocation) []string { return append(strings.Fields(r.AlsoOn), r.Owner.Node) }
