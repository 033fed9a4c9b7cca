package whereabouts

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// someRange draws an attachment's range from a few overlapping ones.
func someRange(t *rapid.T) attachedRange {
	ip := func(what string) netip.Addr {
		return netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(0, 15).Draw(t, what))})
	}
	r := attachedRange{
		sliced:     rapid.IntRange(0, 2).Draw(t, "sliced") == 0,
		network:    rapid.SampledFrom([]string{"", "blue"}).Draw(t, "network"),
		anyNetwork: rapid.Bool().Draw(t, "any network"),
		from:       netip.MustParsePrefix(rapid.SampledFrom([]string{"10.0.0.0/28", "10.0.0.8/29"}).Draw(t, "from")),
	}
	if rapid.Bool().Draw(t, "gives") {
		r.first, r.last = ip("first"), ip("last")
	}
	if rapid.IntRange(0, 4).Draw(t, "broken") == 0 {
		r.broken = errors.New("broken")
		return r
	}
	var spans []ipam.Span
	for range rapid.IntRange(0, 3).Draw(t, "excludes") {
		spans = append(spans, ipam.Span{First: ip("excluded"), Last: ip("to")})
	}
	r.exclude = ipam.NewSpans(spans...)
	return r
}

// The addresses of a network are what a walk through all attachments finds that gives them, and an
// attachment that excludes one of the others is named.
func TestCapacityIsWhatAWalkFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s survey
		for i := range rapid.IntRange(0, 6).Draw(t, "attachments") {
			s.add(&configuration{name: fmt.Sprint("ns/a", i), ranges: []attachedRange{someRange(t)}})
		}
		for _, n := range s.networks(nil) {
			ofIt := func(r attachedRange) bool {
				return !r.sliced && !r.anyNetwork && r.from == n.Range && cmp.Or(r.network, unnamed) == n.Unique
			}
			known := !slices.ContainsFunc(s.ranges, func(r attachedRange) bool { return ofIt(r) && r.broken == nil && !r.first.IsValid() }) &&
				slices.ContainsFunc(s.ranges, func(r attachedRange) bool { return ofIt(r) && r.broken == nil })
			if n.Known != known {
				t.Fatalf("%s is known: %v, want %v", n.Name, n.Known, known)
			}
			for last := range 16 {
				ip := netip.AddrFrom4([4]byte{10, 0, 0, byte(last)})
				given, excluded := false, make(map[string]bool)
				for _, r := range s.ranges {
					if !ofIt(r) {
						continue
					}
					out := r.exclude.Contains(ip)
					given = given || r.broken == nil && r.first.IsValid() && r.first.Compare(ip) <= 0 && ip.Compare(r.last) <= 0 && !out
					if out {
						excluded["excluded by the network attachment "+r.attachment] = true
					}
				}
				if n.Usable.Contains(ip) != given {
					t.Fatalf("%s gives %s: %v, want %v", n.Name, ip, !given, given)
				}
				says := make(map[string]bool)
				for _, w := range n.Withheld {
					if w.Addresses.Contains(ip) {
						says[w.Why] = true
					}
				}
				if !maps.Equal(says, excluded) {
					t.Fatalf("%s of %s: %v, want %v", ip, n.Name, says, excluded)
				}
			}
		}
	})
}
