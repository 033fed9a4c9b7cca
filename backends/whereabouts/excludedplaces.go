package whereabouts

import (
	"net/netip"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

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
