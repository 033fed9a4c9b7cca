package whereabouts

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// attachments returns what the network attachments with these sections exclude.
func attachments(sections ...string) exclusions {
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
		{"by one that is larger", []string{`, "range": "10.0.0.0/29", "exclude": ["0.0.0.0/0"]`}, by},
		{"by the halves of IPv4", []string{`, "range": "10.0.0.0/29", "exclude": ["0.0.0.0/1", "128.0.0.0/1"]`}, by},
		{"by halves", []string{`, "range": "10.0.0.0/29", "exclude": ["10.0.0.4/30", "10.0.0.0/30"]`}, by},
		{"without the first and the last, which the plugin spares", []string{`, "range": "10.0.0.0/29", "exclude": ["10.0.0.1", "10.0.0.2/31", "10.0.0.4/31", "10.0.0.6"]`}, by},
		{"by two attachments with slices of other sizes", []string{`, "range": "10.0.0.0/29", "node_slice_size": "/29", "exclude": ["10.0.0.0/30"]`,
			`, "range": "10.0.0.0/29", "node_slice_size": "/30", "exclude": ["10.0.0.4/30"]`}, by},
		{"by two attachments with the same slices, of which each gives what the other excludes", []string{
			`, "range": "10.0.0.0/29", "node_slice_size": "/29", "exclude": ["10.0.0.0/30"]`,
			`, "range": "10.0.0.0/29", "node_slice_size": "/29", "exclude": ["10.0.0.4/30"]`}, ""},
		{"by two attachments, of which each gives what the other excludes", []string{`, "range": "10.0.0.0/29", "exclude": ["10.0.0.0/30"]`,
			`, "range": "10.0.0.0/29", "exclude": ["10.0.0.4/30"]`}, ""},
		{"by one that cannot be decoded", []string{`, "range": "10.0.0.0/29", "exclude": ["x"]`},
			`the network attachment shop/lan-0 may exclude it: spec.config: exclude: "x" is neither an address nor a CIDR; correct it, or delete the attachment`},
		{"but for one address", []string{`, "range": "10.0.0.0/29", "exclude": ["10.0.0.0/30", "10.0.0.5", "10.0.0.6"]`}, ""},
		{"but for the first one", []string{`, "range": "10.0.0.0/29", "exclude": ["10.0.0.2/31", "10.0.0.4/30"]`}, ""},
		{"but another attachment gives some", []string{all, `, "range": "10.0.0.0/29", "range_start": "10.0.0.5"`}, ""},
		{"but another attachment gives all", []string{all, `, "range": "10.0.0.0/24"`}, ""},
		{"of another range", []string{`, "range": "10.0.0.0/24", "exclude": ["10.0.0.0/24"]`}, ""},
		{"without a range", []string{`, "exclude": ["0.0.0.0/0"]`}, ""},
		{"by nothing", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := testPool(t, "", "10.0.0.0/29").enginePool()
			u.Allocations = []reaper.Allocation{{IP: netip.MustParseAddr("10.0.0.3")}}
			attachments(tt.sections...).protect(&u, place{u.Network, u.Range})
			if u.Protected != tt.want {
				t.Errorf("protected by %q, want %q", u.Protected, tt.want)
			}
		})
	}
}

// A pool is protected as a whole if and only if every address that it can give is.
func TestWholeProtectionIsThatOfEveryAddress(t *testing.T) {
	addresses := rapid.Custom(func(t *rapid.T) string {
		text := fmt.Sprintf("10.0.0.%d", rapid.IntRange(0, 17).Draw(t, "address"))
		if bits := rapid.IntRange(26, 32).Draw(t, "bits"); rapid.Bool().Draw(t, "range") {
			return fmt.Sprintf("%s/%d", text, bits)
		}
		return text
	})
	sections := rapid.Custom(func(t *rapid.T) string {
		section := fmt.Sprintf(`, "range": %q`, rapid.SampledFrom([]string{"10.0.0.0/28", "10.0.0.0/28", "10.0.0.8/29", "10.0.0.0/24"}).Draw(t, "range"))
		if excludes := rapid.SliceOfN(addresses, 0, 6).Draw(t, "exclude"); len(excludes) > 0 {
			section += `, "exclude": ["` + strings.Join(excludes, `", "`) + `"]`
		}
		if rapid.IntRange(0, 9).Draw(t, "sliced") == 0 {
			section += `, "node_slice_size": "/28"`
		}
		return section
	})
	rapid.Check(t, func(t *rapid.T) {
		all := attachments(rapid.SliceOfN(sections, 1, 3).Draw(t, "sections")...)
		at := place{unnamed, netip.MustParsePrefix("10.0.0.0/28")}
		want := true
		for n := range 14 {
			ip, err := addressAt(at.in, fmt.Sprint(n+1))
			if err != nil {
				t.Fatal(err)
			}
			want = want && all.protection(at, ip) != ""
		}
		if got := all.wholeProtection(at, at.in); (got != "") != want {
			t.Errorf("the whole pool is protected by %q, want %v", got, want)
		}
	})
}

// An overlapping reservation is of the range of its entry's pool. So an attachment of a
// larger range does not hold both.
func TestReservationIsOfTheRangeOfItsEntry(t *testing.T) {
	for _, tt := range []struct{ section, want string }{
		{`, "range": "10.0.0.0/24", "exclude": ["10.0.0.4"]`, "excluded by the network attachment shop/lan"},
		{`, "range": "0.0.0.0/0", "exclude": ["0.0.0.0/0"]`, ""},
	} {
		_, client := newAPI(t, map[string]http.HandlerFunc{
			"GET ippools": items(leakyPool), "GET overlappingrangeipreservations": items(leaked),
			listAttachments: items(attachment("lan", single(tt.section))),
		})
		for pool, err := range NewOverlapping(client).List(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if a := pool.Allocations[0]; a.Group == "" || a.Protected != tt.want {
				t.Errorf("%s: the reservation is %+v, want it protected by %q", tt.section, a, tt.want)
			}
		}
	}
}
