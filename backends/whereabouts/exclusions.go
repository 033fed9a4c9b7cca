package whereabouts

import (
	"iter"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// exclusions are what all network attachments exclude. They are not safe for concurrent use.
type exclusions struct {
	ranges []attachedRange         // of all attachments
	closed []ipam.Network          // one for each attachment without a range
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

// beside yields an error for each attachment that cannot be decoded, then the pools. So the
// report names the attachment until it is corrected.
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

// protect sets the protection of each excluded address in a pool whose addresses are given at
// the place.
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
// write thousands of attachments, so each place is worked out once.
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

// protect sets what keeps the allocations of a pool whose addresses are given at the place.
// stored returns an allocation as stored.
func (p protections) protect(u *ipam.Pool, at place, stored func(ipam.Allocation) string) {
	p.excluded.protect(u, at)
	for i := range u.Allocations {
		a := &u.Allocations[i]
		p.claims.protect(a, stored(*a))
		if p.settings.UnknownFields == IgnoreUnknownFields {
			a.UnknownField = ""
		}
	}
}
