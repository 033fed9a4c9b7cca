package whereabouts

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// someRange draws a range of an attachment, of a few overlapping ones.
func someRange(t *rapid.T) attachedRange {
	ip := func(what string) netip.Addr {
		return netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(0, 15).Draw(t, what))})
	}
	r := attachedRange{
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
	var spans []reaper.Span
	for range rapid.IntRange(0, 3).Draw(t, "excludes") {
		spans = append(spans, reaper.Span{First: ip("excluded"), Last: ip("to")})
	}
	r.exclude = reaper.NewSpans(spans...)
	return r
}

// Promise 1. What protects an address is found as a walk through all attachments finds it: it
// is protected by the one, if it is by the other, and an attachment that does is named.
func TestKeepersFindWhatAWalkFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all exclusions
		for i := range rapid.IntRange(0, 6).Draw(t, "attachments") {
			all.add(fmt.Sprint("ns/a", i), []attachedRange{someRange(t)})
		}
		at := place{network: rapid.SampledFrom([]string{"", unnamed, "blue", "red"}).Draw(t, "at")}
		if in := rapid.SampledFrom([]string{"", "10.0.0.0/28", "10.0.0.8/29"}).Draw(t, "in"); in != "" {
			at.in = netip.MustParsePrefix(in)
		}
		for last := range 17 {
			ip := netip.AddrFrom4([4]byte{10, 0, 0, byte(last)})
			var broken, excluding []string
			for _, r := range all.keeping {
				switch {
				case !r.mayBeOf(at, ip):
				case r.broken != nil:
					broken = append(broken, "the network attachment "+r.attachment+" may exclude it: broken")
				case r.exclude.Contains(ip):
					excluding = append(excluding, "excluded by the network attachment "+r.attachment)
				}
			}
			given := slices.ContainsFunc(all.giving, func(r attachedRange) bool {
				return cmp.Or(r.network, unnamed) == at.network && r.has(ip)
			})
			want := broken
			if len(broken) == 0 {
				want = excluding
			}
			if given {
				want = nil
			}
			got := all.protection(at, ip)
			if got == "" && len(want) > 0 || got != "" && !slices.Contains(want, got) {
				t.Fatalf("%s at %v is protected by %q, want one of %q", ip, at, got, strings.Join(want, ", "))
			}
		}
	})
}

// BenchmarkProtect protects allocations that each of as many attachments of their range
// exclude.
func BenchmarkProtect(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			from := netip.MustParsePrefix("10.0.0.0/16")
			ips := make([]netip.Addr, n)
			for i := range ips {
				ips[i] = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
			}
			for b.Loop() {
				var all exclusions
				for i, ip := range ips {
					all.add(fmt.Sprint("ns/a", i), []attachedRange{{
						from: from, first: ips[0], last: ips[0], exclude: reaper.Spans{{First: ips[0], Last: ip}},
					}})
				}
				for _, ip := range ips[1:] {
					if all.protection(place{unnamed, from}, ip) == "" {
						b.Fatalf("%s is not protected", ip)
					}
				}
			}
		})
	}
}
