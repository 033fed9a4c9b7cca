package whereabouts

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
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
		slice:      rapid.SampledFrom([]string{"/29", "/30"}).Draw(t, "slice"),
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

// Promise 1. An address is protected if and only if a walk through all attachments finds one
// that protects it, and such an attachment is named. A pool is protected as a whole if and only
// if every address that it can give is.
func TestProtectionIsWhatAWalkFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := new(exclusions)
		for i := range rapid.IntRange(0, 6).Draw(t, "attachments") {
			all.add(fmt.Sprint("ns/a", i), []attachedRange{someRange(t)})
		}
		at := place{network: rapid.SampledFrom([]string{"", unnamed, "blue", "blue-n1", "red"}).Draw(t, "at")}
		if in := rapid.SampledFrom([]string{"", "10.0.0.0/28", "10.0.0.8/29"}).Draw(t, "in"); in != "" {
			at.in = netip.MustParsePrefix(in)
		}
		k, whole := all.excludedAt(at), true
		for last := range 17 {
			ip := netip.AddrFrom4([4]byte{10, 0, 0, byte(last)})
			if at.in.IsValid() && !at.in.Contains(ip) {
				continue // the pool cannot have it
			}
			gives := func(fits func(attachedRange) bool) bool {
				return slices.ContainsFunc(all.ranges, func(r attachedRange) bool {
					return fits(r) && r.first.Compare(ip) <= 0 && ip.Compare(r.last) <= 0 && !r.exclude.Contains(ip)
				})
			}
			var want []string
			for _, r := range all.ranges {
				sameSlices := func(g attachedRange) bool {
					return g.sliced && g.network == r.network && g.from == r.from && g.slice == r.slice
				}
				switch {
				case !r.from.Contains(ip) || !r.mayBeOf(at):
				case r.sliced && !r.anyNetwork && gives(sameSlices):
				case r.broken != nil:
					want = append(want, "the network attachment "+r.attachment+" may exclude it: broken")
				case r.exclude.Contains(ip):
					want = append(want, "excluded by the network attachment "+r.attachment)
				}
			}
			if gives(func(r attachedRange) bool { return !r.sliced && cmp.Or(r.network, unnamed) == at.network }) {
				want = nil
			}
			got := k.protection(ip)
			if got == "" && len(want) > 0 || got != "" && !slices.Contains(want, got) {
				t.Fatalf("%s at %v is protected by %q, want one of %q", ip, at, got, strings.Join(want, ", "))
			}
			whole = whole && (last < 9 || last > 14 || got != "") // 10.0.0.8/29 without its ends
		}
		if got := k.wholeProtection(netip.MustParsePrefix("10.0.0.8/29")); (got != "") != whole {
			t.Errorf("the whole pool is protected by %q, want %v", got, whole)
		}
	})
}

// attachments returns what the network attachments with these sections exclude.
func attachments(sections ...string) *exclusions {
	var items []json.RawMessage
	for i, section := range sections {
		items = append(items, json.RawMessage(attachment(fmt.Sprint("lan-", i), single(section))))
	}
	return readExclusions(items)
}

func TestPoolIsProtectedAsAWhole(t *testing.T) {
	const by = "excluded by the network attachment shop/lan-0"
	const all = `, "range": "10.0.0.0/29", "exclude": ["10.0.0.0/29"]`
	for _, tt := range []struct {
		name     string
		sections []string
		want     string
	}{
		{"by one exclude", []string{all}, by},
		{"by halves", []string{`, "range": "10.0.0.0/29", "exclude": ["10.0.0.4/30", "10.0.0.0/30"]`}, by},
		{"without the first and the last, which the plugin spares", []string{`, "range": "10.0.0.0/29", "exclude": ["10.0.0.1", "10.0.0.2/31", "10.0.0.4/31", "10.0.0.6"]`}, by},
		{"by two attachments with slices of other sizes", []string{`, "range": "10.0.0.0/29", "node_slice_size": "/29", "exclude": ["10.0.0.4/30"]`,
			`, "range": "10.0.0.0/29", "node_slice_size": "/30", "exclude": ["10.0.0.0/30"]`}, "excluded by the network attachment shop/lan-1"},
		{"by two attachments with the same slices, of which each gives what the other excludes", []string{
			`, "range": "10.0.0.0/29", "node_slice_size": "/29", "exclude": ["10.0.0.0/30"]`,
			`, "range": "10.0.0.0/29", "node_slice_size": "/29", "exclude": ["10.0.0.4/30"]`}, ""},
		{"by two attachments, of which each gives what the other excludes", []string{`, "range": "10.0.0.0/29", "exclude": ["10.0.0.0/30"]`,
			`, "range": "10.0.0.0/29", "exclude": ["10.0.0.4/30"]`}, ""},
		{"by one that cannot be decoded", []string{`, "range": "10.0.0.0/29", "exclude": ["x"]`},
			`the network attachment shop/lan-0 may exclude it: spec.config: exclude: "x" is neither an address nor a CIDR; correct it, or delete the attachment`},
		{"but for one address", []string{`, "range": "10.0.0.0/29", "exclude": ["10.0.0.0/30", "10.0.0.5", "10.0.0.6"]`}, ""},
		{"but another attachment gives some", []string{all, `, "range": "10.0.0.0/29", "range_start": "10.0.0.5"`}, ""},
		{"of another range", []string{`, "range": "10.0.0.0/24", "exclude": ["10.0.0.0/24"]`}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := testPool(t, "", "10.0.0.0/29").enginePool()
			u.Allocations = []ipam.Allocation{{IP: netip.MustParseAddr("10.0.0.3")}}
			attachments(tt.sections...).protect(&u, place{u.Network, u.Range})
			if u.Protected != tt.want {
				t.Errorf("protected by %q, want %q", u.Protected, tt.want)
			}
		})
	}
}

// An overlapping reservation belongs to the range of its entry's pool. So an attachment with a
// larger range does not hold it.
func TestReservationIsOfTheRangeOfItsEntry(t *testing.T) {
	for _, tt := range []struct{ section, want string }{
		{`, "range": "10.0.0.0/24", "exclude": ["10.0.0.4"]`, "excluded by the network attachment shop/lan"},
		{`, "range": "0.0.0.0/0", "exclude": ["0.0.0.0/0"]`, ""},
	} {
		_, client := newAPI(t, map[string]http.HandlerFunc{
			"GET ippools": items(leakyPool), "GET overlappingrangeipreservations": items(leaked),
			listAttachments: items(attachment("lan", single(tt.section))),
		})
		listed := 0
		for pool, err := range NewOverlapping(client, Settings{}, atOnce).List(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			listed++
			if a := pool.Allocations[0]; a.Group == "" || a.Protected != tt.want {
				t.Errorf("%s: the reservation is %+v, want it protected by %q", tt.section, a, tt.want)
			}
		}
		if listed != 1 {
			t.Errorf("%s: %d reservations were listed, want 1", tt.section, listed)
		}
	}
}
