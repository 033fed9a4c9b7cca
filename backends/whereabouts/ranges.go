package whereabouts

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// An attachedRange is one range of a network attachment. The plugin gives none of the addresses
// that it excludes, but it may have given one before.
//
// The plugin's configuration file on a node may also have a range. That file is not in the API
// server, so such a range is unknown here.
type attachedRange struct {
	attachment string       // namespace/name
	network    string       // its network_name; empty: unnamed
	anyNetwork bool         // the network_name is unknown
	anywhere   bool         // the range is unknown, too: it may be any
	sliced     bool         // each node has its own pool, of a part of the range
	from       netip.Prefix // the range; invalid: unknown
	exclude    ipam.Spans

	// The plugin gives the addresses from first to last to pods. Both are invalid if it is
	// uncertain whether the plugin gives any.
	first, last netip.Addr

	// broken is why it is unknown which of its addresses the plugin gives; nil if that is known.
	broken error
}

// mayBeOf reports whether the plugin may give addresses of the range at the place. The pool of
// an attachment has its range and network, or a part of the range and the name of a node. As in
// supportedBy, that name cannot be told from a network_name.
func (r attachedRange) mayBeOf(at place) bool {
	switch {
	case r.anywhere:
		return true
	case !r.from.IsValid(), at.in.IsValid() && (!r.from.Overlaps(at.in) || !r.sliced && at.in != r.from):
		return false
	case r.anyNetwork || at.network == "":
		return true
	case r.sliced:
		return mayBeOf(at.network, r.network)
	}
	return cmp.Or(r.network, unnamed) == at.network
}

// gives returns the addresses that the plugin certainly gives to pods for the range.
func (r attachedRange) gives() ipam.Spans {
	return ipam.NewSpans(ipam.Span{First: r.first, Last: r.last}).Without(r.exclude)
}

// mayHaveGiven reports whether the plugin may have given an address of the range to a pod, maybe before
// the attachment excluded it. In a slice, the bounds do not count.
func (r attachedRange) mayHaveGiven(ip netip.Addr) bool {
	return r.sliced || !r.first.IsValid() || !ip.Less(r.first) && !r.last.Less(ip)
}

// rangesAt returns the ranges for which the plugin may give addresses at the place.
func rangesAt(at place, all []attachedRange) []attachedRange {
	return slices.DeleteFunc(slices.Clone(all), func(r attachedRange) bool { return !r.mayBeOf(at) })
}

// checkGiven returns an error if ranges of a place contain the address, and it is outside of the bounds of
// each. If no range contains it, its configuration may be in a file on the nodes.
func checkGiven(ip netip.Addr, ranges []attachedRange) error {
	var refused error
	for _, r := range ranges {
		switch {
		case !r.from.Contains(ip):
		case r.mayHaveGiven(ip):
			return nil
		case refused == nil:
			refused = fmt.Errorf("%s is not put back: the network attachment %s gives only %s to %s", ip, r.attachment, r.first, r.last)
		}
	}
	return refused
}
