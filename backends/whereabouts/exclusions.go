package whereabouts

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// exclusions are what all network attachments exclude. They are not safe for concurrent use.
type exclusions struct {
	ranges []attachedRange         // of all attachments
	closed []ipam.Network          // one for each attachment without a range
	unsure []string                // those of them that may have one in a file on the nodes
	broken []error                 // a *ipam.ObjectError for each attachment that cannot be decoded
	places map[place]excludedPlace // those asked for so far
	given  map[source]ipam.Spans   // what the plugin certainly gives to pods
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

// withObjectErrors yields an error for each attachment that cannot be decoded, then the pools. So the
// report names the attachment until it is corrected.
func (all *exclusions) withObjectErrors(pools iter.Seq2[ipam.Pool, error]) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		for _, err := range all.broken {
			if !yield(ipam.Pool{}, err) {
				return
			}
		}
		pools(yield)
	}
}

// protect sets the protection of each excluded address in a pool whose addresses are given at
// the place.
func (all *exclusions) protect(u *ipam.Pool, at place) {
	if len(all.ranges) == 0 {
		return
	}
	k := all.excludedAt(at)
	for i := range u.Allocations {
		if r := &u.Allocations[i]; r.IP.IsValid() {
			r.Protected = k.protection(r.IP)
		}
	}
	if len(u.Allocations) > 0 && u.Range.IsValid() {
		u.Protected = k.wholeProtection(asRange(u.Range))
	}
}

// excludedAt returns what is excluded at a place. Pools have thousands of allocations, and tenants may
// write thousands of attachments, so each place is worked out once.
func (all *exclusions) excludedAt(at place) excludedPlace {
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

// givenBy returns the addresses that the plugin certainly gives to pods from a source.
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

// protections are everything that keeps an allocation without an owner.
type protections struct {
	excluded *exclusions
	claims   claims
	settings Settings
}

// protect sets what keeps the allocations of a pool whose addresses are given at the place. One that
// belongs to an IPAMClaim is kept, unless the claim is certainly gone. stored returns an allocation as
// stored: an entry, or the spec of an overlapping reservation.
func (p protections) protect(u *ipam.Pool, at place, stored func(ipam.Allocation) string) {
	p.excluded.protect(u, at)
	for i := range u.Allocations {
		a := &u.Allocations[i]
		if claim := claimOf(stored(*a)); claim != "" && a.Protected == "" {
			a.Protected = p.claims.protection(claim)
		}
		if p.settings.UnknownFields == IgnoreUnknownFields {
			a.UnknownField = ""
		}
	}
}

// An excludedPlace has what attachments protect at one place. An attachment that excludes an
// address protects it where the attachment itself would give it, unless the plugin gives the
// same address to pods of another attachment. An attachment that cannot be decoded may exclude
// everything it names.
type excludedPlace struct {
	protected ipam.Spans
	by        []excluding
}

// An excluding is an attachment's range, with what it excludes at a place.
type excluding struct {
	ipam.Spans
	*attachedRange
}

// newPlace returns what is excluded at a place.
func (all *exclusions) newPlace(at place) excludedPlace {
	var k excludedPlace
	for i := range all.ranges {
		r := &all.ranges[i]
		if !r.mayBeOf(at) || r.broken == nil && len(r.exclude) == 0 {
			continue
		}
		excluded := ipam.Spans{ipam.SpanOf(r.from)}
		if r.broken == nil {
			excluded = r.exclude
			if at.in.IsValid() { // a slice has a small part of it
				excluded = excluded.Within(at.in)
			}
			excluded = excluded.Within(r.from)
		}
		if r.sliced && !r.anyNetwork {
			excluded = excluded.Without(all.givenBy(r.source()))
		}
		k.protected = append(k.protected, excluded...)
		k.by = append(k.by, excluding{excluded, r})
	}
	k.protected = ipam.NewSpans(k.protected...).Without(all.givenBy(source{network: at.network}))
	return k
}

// protection says what protects an address; empty if nothing does.
func (k excludedPlace) protection(ip netip.Addr) string {
	if !k.protected.Contains(ip) {
		return ""
	}
	for _, by := range k.by {
		switch {
		case !by.Contains(ip):
		case by.broken != nil:
			return "the network attachment " + by.attachment + " may exclude it: " + by.broken.Error()
		default:
			return "excluded by the network attachment " + by.attachment
		}
	}
	return ""
}

// wholeProtection says what protects every address that a pool of the range can give; empty if
// the pool can give an address that nothing protects. If it takes several attachments, it names
// one that protects the first address.
func (k excludedPlace) wholeProtection(in netip.Prefix) string {
	usable := handedOut(in)
	if len(usable) == 0 { // an older version of the plugin may have given an address
		usable = ipam.Spans{ipam.SpanOf(in)}
	}
	if len(usable.Without(k.protected)) > 0 {
		return ""
	}
	return k.protection(usable[0].First)
}

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
