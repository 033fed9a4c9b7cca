package calico

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The settings have one form in the API server and another in etcd. Calico has defaults if there are
// none.
func TestTermsOfBlocks(t *testing.T) {
	for _, tt := range []struct {
		stored string
		want   ipam.BlockTerms
		rest   time.Duration
	}{
		{"", ipam.BlockTerms{MaxPerNode: 20}, 0},
		{`{"spec":{"strictAffinity":true,"autoAllocateBlocks":true,"maxBlocksPerHost":1}}`, ipam.BlockTerms{Strict: true, MaxPerNode: 1, Limited: true}, 0},
		{`{"spec":{"strictAffinity":false,"autoAllocateBlocks":true,"ipCooldownSeconds":90}}`, ipam.BlockTerms{MaxPerNode: 20}, 90 * time.Second},
		{`{"strict_affinity":true,"ipCooldownSeconds":1200}`, ipam.BlockTerms{Strict: true, Manual: true, MaxPerNode: 20}, 20 * time.Minute},
		{`{"auto_allocate_blocks":true,"maxBlocksPerHost":2,"ipCooldownSeconds":-5}`, ipam.BlockTerms{MaxPerNode: 2, Limited: true}, 0},
	} {
		var stored []byte
		if tt.stored != "" {
			stored = []byte(tt.stored)
		}
		got := sharesBy(stored, nil)
		if got.unknown != "" || *got.terms != tt.want || got.rest != tt.rest {
			t.Errorf("%s: %+v; want %+v and a rest of %v", tt.stored, got, tt.want, tt.rest)
		}
	}
	for _, stored := range []string{`{"spec":{"strictAffinity":"yes"}}`, `{"ipCooldownSeconds":99999999999}`} {
		if got := sharesBy([]byte(stored), nil); got.terms != nil || got.rest != 20*time.Minute || got.unknown == "" {
			t.Errorf("settings that cannot be decoded: %+v", got)
		}
	}
}

// poolsIn returns the pools of the store.
func poolsIn(t *testing.T, s *fixture) (all []ipam.Pool) {
	t.Helper()
	for p, err := range s.backend.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// Each block says how long Calico lets its addresses rest, and why. If that cannot be read, it may be
// as long as Calico accepts.
func TestBlocksSayHowLongTheirAddressesRest(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		s := newFixture(t, sh)
		s.leak(1)
		s.more["settings"] = []resource{{data: []byte(`{"spec":{"ipCooldownSeconds":600},"ipCooldownSeconds":600}`)}}
		says := func() string {
			t.Helper()
			for _, p := range poolsIn(t, s) {
				if p.Range.IsValid() {
					return p.Rest.String() + ": " + p.RestBy
				}
			}
			return "no block"
		}
		if want := "10m0s: Calico lets an address rest for 10m0s after its release (ipCooldownSeconds)"; says() != want {
			t.Errorf("%s, want %s", says(), want)
		}
		s.onRequest(func(request string) error {
			if request == "settings" {
				return errRefused
			}
			return nil
		})
		if want := "20m0s: Calico may let an address rest for 20m0s after its release: read the settings of Calico's IPAM: " + errRefused.Error(); says() != want {
			t.Errorf("%s, want %s", says(), want)
		}
	})
}

func TestKeysOfAffinities(t *testing.T) {
	for key, want := range map[string]string{
		"/calico/ipam/v2/host/n-1/ipv4/block/10.0.0.0-26":      "n-1 10.0.0.0/26",
		"/calico/ipam/v2/host/n-1/ipv6/block/fd00::40-122":     "n-1 fd00::40/122",
		"/calico/ipam/v2/host/n-1/ipv4/block/10.0.0.0":         "",
		"/calico/ipam/v2/host/n-1":                             "",
		"/calico/ipam/v2/assignment/ipv4/block/10.0.0.0-26":    "",
		"/calico/ipam/v2/virtual/load/ipv4/block/10.0.0.0-26":  "",
		"/calico/ipam/v2/host/n-1/ipv4/block/10.0.0.0-26-more": "",
	} {
		got := ""
		if a, ok := affinityOfKey(key); ok {
			got = a.node + " " + a.cidr.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

// Which blocks are left: those that neither exist nor are reserved as a whole.
func TestUnclaimedBlocks(t *testing.T) {
	for _, tt := range []struct {
		pool, size     string
		exist, reserve []string
		want           string
	}{
		{"10.0.0.0/24", "26", nil, nil, "4"},
		{"10.0.0.0/24", "", []string{"10.0.0.64/26"}, nil, "3"},
		{"10.0.0.0/24", "26", []string{"10.0.0.64/26", "10.0.0.128/28"}, nil, "3"},
		{"10.0.0.0/24", "26", []string{"10.0.0.64/26"}, []string{"10.0.0.64/26", "10.0.0.128/27", "10.0.0.160/27", "10.0.0.192/27"}, "2"},
		{"10.0.0.0/24", "26", []string{"10.0.0.0/26"}, []string{"10.0.0.0/16"}, "0"},
		{"10.0.0.0/24", "24", nil, nil, "1"},
		{"fd00::/64", "", []string{"fd00::/122"}, nil, "288230376151711743"},
		{"10.0.0.0/24", "20", nil, nil, "unknown"},
		{"10.0.0.0/24", `"big"`, nil, nil, "unknown"},
	} {
		p := readIPPool(resource{"p", fmt.Appendf(nil, `{"spec":{"cidr":%q,"blockSize":%s}}`, tt.pool, orNull(tt.size))})
		var inside []netip.Prefix
		for _, b := range blocksOf(tt.exist...) {
			inside = append(inside, b.Range)
		}
		var kept []ipam.Span
		for _, r := range tt.reserve {
			kept = append(kept, ipam.SpanOf(netip.MustParsePrefix(r)))
		}
		got := "unknown"
		if d := (shares{}).divide(p, inside, ipam.NewSpans(kept...), true, strings.ToUpper); d.Unclaimed != nil {
			got = d.Unclaimed.String()
		}
		if got != tt.want || (got == "unknown") != (p.oddSize != nil) {
			t.Errorf("%s with blocks of %s: %s are left (%v), want %s", tt.pool, tt.size, got, p.oddSize, tt.want)
		}
	}
}

// orNull returns a JSON text, or null for none.
func orNull(text string) string {
	if text == "" {
		return "null"
	}
	return text
}

// A survey says how nodes share an IPPool. Without the rights, it says what is unknown, and knows the
// rest.
func TestSurveySaysHowNodesShareIPPools(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		s := newFixture(t, sh)
		s.more["ippools"] = []resource{{"p", []byte(`{"spec":{"cidr":"10.0.0.0/24","blockSize":26,"nodeSelector":"zone == 'a'"}}`)}}
		s.more["settings"] = []resource{{data: []byte(`{"spec":{"strictAffinity":true,"autoAllocateBlocks":true}}`)}}
		for _, spec := range []string{
			`{"node":"n-1","cidr":"10.0.0.0/26","type":"host"}`, `{"node":"n-1","cidr":"10.0.0.64/26"}`,
			`{"node":"n-2","cidr":"10.9.0.0/26"}`, `{"node":"load","cidr":"10.0.0.128/26","type":"virtual"}`, `{"cidr":"10.0.0.192/26"}`, `7`,
		} {
			s.more["blockaffinities"] = append(s.more["blockaffinities"], resource{data: []byte(`{"spec":` + spec + `}`)})
		}
		survey := func() ([]ipam.Network, error) {
			poolsIn(t, s)
			return s.backend.Survey(t.Context(), blocksOf("10.0.0.0/26"))
		}
		got, err := survey()
		if err != nil || len(got) != 1 {
			t.Fatalf("networks %v, %v", got, err)
		}
		d := got[0].Division
		owned := map[string][]netip.Prefix{"n-1": {netip.MustParsePrefix("10.0.0.0/26"), netip.MustParsePrefix("10.0.0.64/26")}}
		if diff := cmp.Diff(owned, d.Owned, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Errorf("claims of nodes (-want +got):\n%s", diff)
		}
		if want := (ipam.BlockTerms{Strict: true, MaxPerNode: 20}); d.Terms == nil || *d.Terms != want || d.Unclaimed.Int64() != 3 {
			t.Errorf("%+v on the terms %+v, want %+v of 3 blocks for some nodes", d, d.Terms, want)
		}
		for _, fails := range []string{"settings", "affinities"} {
			s.onRequest(func(request string) error {
				if request == fails {
					return errRefused
				}
				return nil
			})
			got, err := survey()
			if err == nil || !strings.Contains(err.Error(), "which node may use which block: ") || len(got) != 1 || !got[0].Known {
				t.Fatalf("%s fails: networks %v, %v", fails, got, err)
			}
			if d := got[0].Division; d.Terms != nil || !strings.Contains(d.Unknown, errRefused.Error()) || d.Unclaimed.Int64() != 3 {
				t.Errorf("%s fails: %+v", fails, d)
			}
		}
	})
}
