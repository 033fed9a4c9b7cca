package whereabouts

import (
	"cmp"
	"iter"
	"net/netip"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// An attachedRange is one range of a network attachment, with what it excludes. The
// plugin allocates no excluded address, but it may have allocated one before it was
// excluded.
//
// The plugin's configuration file on a node may have a range and exclude addresses,
// too. The API server does not have that file, so such a range is unknown here.
type attachedRange struct {
	attachment string       // namespace/name
	network    string       // its network_name; empty: unnamed
	anyNetwork bool         // the network_name cannot be decoded
	sliced     bool         // each node has a pool of its own, of a part of the range
	slice      string       // the size of these parts, as it is written
	from       netip.Prefix // the range; not valid: it cannot be told
	exclude    ipam.Spans

	// The plugin gives the addresses from first to last to pods. Both are not valid
	// if it is not sure that the plugin gives any.
	first, last netip.Addr

	// refused is set if the plugin refuses the section of the range, and unsure if it may
	// read the range in another way. The zero value of both, with bounds that are not
	// valid, is a range of fewer than four addresses, of which it gives none.
	refused, unsure bool

	// broken is why the exclude is not known; nil if it is known. Such a range may
	// exclude all of its addresses.
	broken error
}

// exclusions are what all network attachments exclude. They are for one goroutine.
type exclusions struct {
	ranges []attachedRange         // of all attachments
	broken []error                 // a *ipam.ObjectError for each attachment that cannot be decoded
	places map[place]excludedPlace // those that were asked for
	given  map[source]ipam.Spans   // what the plugin surely gives to pods
}

// A place is a pool from which the plugin gives addresses.
type place struct {
	network string       // empty: it cannot be told
	in      netip.Prefix // the range of the pool; not valid: it cannot be told
}

// add adds the ranges of one attachment.
func (all *exclusions) add(attachment string, ranges []attachedRange) {
	broken := false
	for _, r := range ranges {
		r.attachment = attachment
		all.ranges = append(all.ranges, r)
		if r.broken != nil && !broken {
			broken = true
			all.broken = append(all.broken, &ipam.ObjectError{Object: "network attachment " + attachment, Err: r.broken})
		}
	}
}

// beside yields an error for each attachment that cannot be decoded, and then the
// pools. So the report names the attachment until it is corrected.
func (all *exclusions) beside(pools iter.Seq2[ipam.Pool, error]) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		for _, err := range all.broken {
			if !yield(ipam.Pool{}, err) {
				return
			}
		}
		pools(yield)
	}
}

// protect sets the protection of each excluded address in a pool. The addresses are
// given at the place.
func (all *exclusions) protect(u *ipam.Pool, at place) {
	if len(all.ranges) == 0 {
		return
	}
	k := all.at(at)
	for i := range u.Allocations {
		if r := &u.Allocations[i]; r.IP.IsValid() {
			r.Protected = k.protection(r.IP)
		}
	}
	if len(u.Allocations) > 0 && u.Range.IsValid() {
		u.Protected = k.wholeProtection(asRange(u.Range))
	}
}

// at returns what is excluded at a place. Pools have thousands of allocations, and tenants may
// write thousands of attachments, so a place is looked at once.
func (all *exclusions) at(at place) excludedPlace {
	at.in = asRange(at.in)
	k, known := all.places[at]
	if !known {
		if all.places == nil {
			all.places = make(map[place]excludedPlace)
		}
		k = all.newPlace(at)
		all.places[at] = k
	}
	return k
}

// mayBeOf reports whether the plugin may give addresses for the range at the place. The pool
// of an attachment has its range and its network, or a part of the range and the name of a
// node. As in supportedBy, that name cannot be told from a network_name.
func (r attachedRange) mayBeOf(at place) bool {
	switch {
	case !r.from.IsValid(), at.in.IsValid() && (!r.from.Overlaps(at.in) || !r.sliced && at.in != r.from):
		return false
	case r.anyNetwork || at.network == "":
		return true
	case r.sliced:
		return mayBeOf(at.network, r.network)
	}
	return cmp.Or(r.network, unnamed) == at.network
}

// asRange returns a range as rangeOf does: masked, and IPv4 if it is IPv4 in IPv6.
func asRange(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// gives returns the addresses that the plugin surely gives to pods for the range.
func (r attachedRange) gives() ipam.Spans {
	return ipam.NewSpans(ipam.Span{First: r.first, Last: r.last}).Without(r.exclude)
}

// A source is whence pods get addresses: all ranges of a network, or all with the same slices.
// The pool of a slice has the name of a node, which cannot be told from a network_name. So an
// attachment with other slices proves nothing.
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

// givenBy returns the addresses that the plugin surely gives to pods of a source.
func (all *exclusions) givenBy(s source) ipam.Spans {
	if all.given == nil {
		spans := make(map[source][]ipam.Span)
		for _, r := range all.ranges {
			if r.first.IsValid() {
				spans[r.source()] = append(spans[r.source()], r.gives()...)
			}
		}
		all.given = make(map[source]ipam.Spans, len(spans))
		for of, some := range spans {
			all.given[of] = ipam.NewSpans(some...)
		}
	}
	return all.given[s]
}
