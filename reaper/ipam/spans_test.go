package ipam_test

import (
	"math/big"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Spans are the set of addresses that a list of single addresses gives, at both ends of
// both families too.
func TestSpansAreSetsOfAddresses(t *testing.T) {
	const size = 64
	bases := []string{"10.0.0.0", "0.0.0.0", "255.255.255.192", "fd00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffc0"}
	rapid.Check(t, func(t *rapid.T) {
		var all []netip.Addr
		for ip := netip.MustParseAddr(rapid.SampledFrom(bases).Draw(t, "base")); len(all) < size; ip = ip.Next() {
			all = append(all, ip)
		}
		set := func(name string) (ipam.Spans, map[netip.Addr]bool) {
			var spans []ipam.Span
			in := make(map[netip.Addr]bool)
			for range rapid.IntRange(0, 6).Draw(t, name) {
				from, to := rapid.IntRange(0, size-1).Draw(t, "from"), rapid.IntRange(0, size-1).Draw(t, "to")
				spans = append(spans, ipam.Span{First: all[from], Last: all[to]})
				for i := from; i <= to; i++ {
					in[all[i]] = true
				}
			}
			return ipam.NewSpans(spans...), in
		}
		a, inA := set("a")
		b, inB := set("b")
		bits := rapid.IntRange(all[0].BitLen()-6, all[0].BitLen()).Draw(t, "bits")
		prefix := netip.PrefixFrom(all[rapid.IntRange(0, size-1).Draw(t, "in")], bits)
		var want [3]int64
		for _, ip := range all {
			if got := a.Contains(ip); got != inA[ip] {
				t.Errorf("%v contains %v: %v", a, ip, got)
			}
			without, within := inA[ip] && !inB[ip], inA[ip] && prefix.Contains(ip)
			if got := a.Without(b).Contains(ip); got != without {
				t.Errorf("%v without %v contains %v: %v", a, b, ip, got)
			}
			if got := a.Within(prefix).Contains(ip); got != within {
				t.Errorf("%v within %v contains %v: %v", a, prefix, ip, got)
			}
			for i, in := range []bool{inA[ip], without, within} {
				if in {
					want[i]++
				}
			}
		}
		for i, s := range []ipam.Spans{a, a.Without(b), a.Within(prefix)} {
			if s.Count().Cmp(big.NewInt(want[i])) != 0 {
				t.Errorf("%v has %v addresses, want %d", s, s.Count(), want[i])
			}
		}
	})
}
