package whereabouts

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// An attachedRange is one range of a network attachment, with what it excludes. The
// plugin allocates no excluded address, but it may have allocated one before it was
// excluded.
//
// The plugin's configuration file on a node may also have a range and exclude addresses. That
// file is not in the API server, so such a range is unknown here.
type attachedRange struct {
	attachment string       // namespace/name
	network    string       // its network_name; empty: unnamed
	anyNetwork bool         // the network_name is unknown
	anywhere   bool         // the range is unknown, too: it may be any
	sliced     bool         // each node has its own pool, of a part of the range
	slice      string       // the size of these parts, as written
	from       netip.Prefix // the range; invalid: unknown
	exclude    ipam.Spans

	// The plugin gives the addresses from first to last to pods. Both are invalid if it is
	// uncertain whether the plugin gives any.
	first, last netip.Addr

	// broken is why the exclude is unknown; nil if it is known. A broken range may exclude all
	// of its addresses.
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

// mayGive reports whether the plugin may give an address of the range to a pod. In a slice it
// ignores what the attachment excludes (see Survey).
func (r attachedRange) mayGive(ip netip.Addr) bool {
	switch {
	case r.sliced:
		return true
	case r.exclude.Contains(ip):
		return false
	}
	return !r.first.IsValid() || !ip.Less(r.first) && !r.last.Less(ip)
}

// rangesAt returns the ranges for which the plugin may give addresses at the place.
func rangesAt(at place, all []attachedRange) []attachedRange {
	return slices.DeleteFunc(slices.Clone(all), func(r attachedRange) bool { return !r.mayBeOf(at) })
}

// checkGiven returns an error if ranges of a place contain the address, and none of them gives it
// to pods. If no range contains it, its configuration may be in a file on the nodes.
func checkGiven(ip netip.Addr, ranges []attachedRange) error {
	var refused error
	for _, r := range ranges {
		switch {
		case !r.from.Contains(ip):
		case errors.Is(r.broken, errUnread):
			refused = fmt.Errorf("%s is not put back: a network attachment may exclude it: %w", ip, r.broken)
		case r.mayGive(ip):
			return nil
		case refused != nil:
		case r.exclude.Contains(ip):
			refused = fmt.Errorf("%s is not put back: the network attachment %s excludes it", ip, r.attachment)
		default:
			refused = fmt.Errorf("%s is not put back: the network attachment %s gives only %s to %s", ip, r.attachment, r.first, r.last)
		}
	}
	return refused
}

// A source is where pods get addresses from: all ranges of a network, or all with the same
// slices. The pool of a slice is named after a node, which cannot be told from a network_name.
// So an attachment with other slices proves nothing.
type source struct {
	network string
	sliced  bool
	from    netip.Prefix // of the slices
	slice   string
}

// source returns the source to which the range belongs.
func (r attachedRange) source() source {
	if r.sliced {
		return source{r.network, true, r.from, r.slice}
	}
	return source{network: cmp.Or(r.network, unnamed)}
}
