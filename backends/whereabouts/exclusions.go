package whereabouts

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper"
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
	exclude    reaper.Spans

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

// exclusions are what all network attachments exclude.
type exclusions struct {
	keeping []attachedRange                  // those that exclude addresses, or may exclude some
	byRange map[netip.Prefix][]attachedRange // the keeping ones that are not sliced
	sliced  []attachedRange                  // the keeping ones that are
	kept    *excludedPlaces                  // of the keeping ones; nil without any attachment

	giving       []attachedRange // those that surely give addresses to pods, and are not sliced
	givingSlices []attachedRange // those that do, and are
	ranges       []attachedRange // all of them
	broken       []error         // a *reaper.ObjectError for each attachment that cannot be decoded
}

// A place is a pool from which the plugin gives addresses.
type place struct {
	network string       // empty: it cannot be told
	in      netip.Prefix // the range of the pool; not valid: it cannot be told
}

// add adds the ranges of one attachment.
func (all *exclusions) add(attachment string, ranges []attachedRange) {
	if all.byRange == nil {
		all.byRange = make(map[netip.Prefix][]attachedRange)
	}
	all.kept = &excludedPlaces{places: make(map[place]*excludedPlace)}
	broken := false
	for _, r := range ranges {
		r.attachment = attachment
		all.ranges = append(all.ranges, r)
		if r.from.IsValid() && (r.broken != nil || len(r.exclude) > 0) {
			all.keeping = append(all.keeping, r)
			if r.sliced {
				all.sliced = append(all.sliced, r)
			} else {
				all.byRange[r.from] = append(all.byRange[r.from], r)
			}
		}
		switch {
		case r.first.IsValid() && r.sliced:
			all.givingSlices = append(all.givingSlices, r)
		case r.first.IsValid():
			all.giving = append(all.giving, r)
		}
		if r.broken != nil && !broken {
			broken = true
			all.broken = append(all.broken, &reaper.ObjectError{Object: "network attachment " + attachment, Err: r.broken})
		}
	}
}

// beside yields an error for each attachment that cannot be decoded, and then the
// pools. So the report names the attachment until it is corrected.
func (all exclusions) beside(pools iter.Seq2[reaper.Pool, error]) iter.Seq2[reaper.Pool, error] {
	return func(yield func(reaper.Pool, error) bool) {
		for _, err := range all.broken {
			if !yield(reaper.Pool{}, err) {
				return
			}
		}
		pools(yield)
	}
}

// protect sets the protection of each excluded address in a pool. The addresses are
// given at the place.
func (all exclusions) protect(u *reaper.Pool, at place) {
	if len(all.keeping) == 0 {
		return
	}
	for i := range u.Allocations {
		if r := &u.Allocations[i]; r.IP.IsValid() {
			r.Protected = all.protection(at, r.IP)
		}
	}
	if len(u.Allocations) > 0 && u.Range.IsValid() {
		u.Protected = all.wholeProtection(at, asRange(u.Range))
	}
}

// protection says what protects an address; it is empty if nothing does. An
// attachment that excludes the address protects it where the attachment itself would
// give it, unless the plugin gives the same address to pods of another attachment. An
// attachment that cannot be decoded may exclude all that it names.
func (all exclusions) protection(at place, ip netip.Addr) string {
	if len(all.keeping) == 0 {
		return ""
	}
	by, k := "", all.kept.at(at, all)
	if r, ok := k.broken.over(ip); ok {
		by = "the network attachment " + r.attachment + " may exclude it: " + r.broken.Error()
	} else if r, ok := k.excluded.over(ip); ok {
		by = "excluded by the network attachment " + r.attachment
	}
	for _, r := range all.sliced {
		switch {
		case !r.mayBeOf(at, ip), all.givesSlicesOf(r, ip):
		case r.broken != nil:
			by = "the network attachment " + r.attachment + " may exclude it: " + r.broken.Error()
		case by == "" && r.exclude.Contains(ip):
			by = "excluded by the network attachment " + r.attachment
		}
	}
	if by == "" || all.kept.gives(at.network, ip, all.giving) {
		return ""
	}
	return by
}

// keepingAt returns those of keeping that may be of the place. An attachment that cannot be
// decoded may have tens of thousands of ranges, so not all of them are asked.
func (all exclusions) keepingAt(at place) []attachedRange {
	switch same := all.byRange[asRange(at.in)]; {
	case !at.in.IsValid():
		return all.keeping
	case len(all.sliced) == 0:
		return same
	default:
		return slices.Concat(same, all.sliced)
	}
}

// mayBeOf reports whether the address may be one that the plugin gives for the range
// at the place. The pool of an attachment has its range and its network, or a part of
// the range and the name of a node. As in supportedBy, that name cannot be told from
// a network_name.
func (r attachedRange) mayBeOf(at place, ip netip.Addr) bool {
	switch {
	case !r.from.Contains(ip), !r.sliced && at.in.IsValid() && asRange(at.in) != r.from:
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

// has reports whether the address is among those that the plugin gives for the range.
func (r attachedRange) has(ip netip.Addr) bool {
	return r.first.Compare(ip) <= 0 && ip.Compare(r.last) <= 0 && !r.exclude.Contains(ip)
}

// givesSlicesOf reports whether the plugin surely gives the address to pods of another
// attachment with the same slices. The pool of a slice has the name of a node, which cannot
// be told from a network_name. So an attachment with other slices proves nothing.
func (all exclusions) givesSlicesOf(r attachedRange, ip netip.Addr) bool {
	return !r.anyNetwork && slices.ContainsFunc(all.givingSlices, func(g attachedRange) bool {
		return g.network == r.network && g.from == r.from && g.slice == r.slice && g.has(ip)
	})
}
