package calico

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// blocksOf returns pools with these ranges.
func blocksOf(ranges ...string) []ipam.Pool {
	var all []ipam.Pool
	for _, text := range ranges {
		all = append(all, ipam.Pool{Name: text, Range: netip.MustParsePrefix(text)})
	}
	return all
}

// linesOf returns a line for each network.
func linesOf(networks []ipam.Network) []string {
	var lines []string
	for _, n := range networks {
		capacity := "unknown"
		if n.Known {
			capacity = n.Usable.Count().String()
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %v %s", n.Name, capacity, n.Pools, n.Closed)))
	}
	return lines
}

// A network is an IPPool with its blocks. Its capacity includes the addresses
// outside blocks, without those of IPReservations. One that no pod can use is
// closed.
func TestIPPoolsAreNetworks(t *testing.T) {
	pool := func(name, spec string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{%s}}`, name, spec)
	}
	four, six := pool("four", `"cidr":"10.0.0.0/24","blockSize":26`), pool("six", `"cidr":"fd00::/64","blockSize":122`)
	for name, tt := range map[string]struct {
		ipPools  []string
		reserved string
		blocks   []string
		want     []string
		err      string
	}{
		"no pool and no block": {},
		"free addresses outside of blocks count": {
			ipPools: []string{four, six}, blocks: []string{"10.0.0.64/26", "fd00::40/122", "10.0.0.0/26"},
			want: []string{"four 256 [10.0.0.64/26 10.0.0.0/26]", "six 18446744073709551616 [fd00::40/122]"},
		},
		"an IPReservation takes addresses, in blocks and outside of them": {
			ipPools: []string{four}, reserved: `["10.0.0.0/30", "10.0.0.2", "10.0.0.192/26", "10.9.0.0/16"]`,
			blocks: []string{"10.0.0.0/26"}, want: []string{"four 188 [10.0.0.0/26]"},
		},
		"a text that is no range reserves nothing": {
			ipPools: []string{four}, reserved: `["x", "10.0.0.0"]`, want: []string{"four 255 []"},
		},
		"an IPReservation that cannot be decoded": {
			ipPools: []string{four}, reserved: `"10.0.0.0"`, want: []string{"four unknown []"},
		},
		"disabled": {ipPools: []string{pool("p", `"cidr":"10.0.0.0/24","disabled":true`)}, want: []string{"p 256 [] disabled"}},
		"for tunnels": {
			ipPools: []string{pool("p", `"cidr":"10.0.0.0/24","allowedUses":["Tunnel"]`)},
			want:    []string{"p 256 [] allowedUses is Tunnel, without Workload"},
		},
		"for pods too": {ipPools: []string{pool("p", `"cidr":"10.0.0.0/24","allowedUses":["Tunnel", "Workload"]`)}, want: []string{"p 256 []"}},
		"being deleted": {
			ipPools: []string{`{"metadata":{"name":"p","deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"cidr":"10.0.0.0/24"}}`},
			want:    []string{"p 256 [] being deleted"},
		},
		"not allocatable": {
			ipPools: []string{`{"metadata":{"name":"p"},"spec":{"cidr":"10.0.0.0/24"},"status":{"conditions":[{"type":"Allocatable","status":"False"}]}}`},
			want:    []string{"p 256 [] its condition Allocatable is False"},
		},
		"blocks of no IPPool": {
			ipPools: []string{four}, blocks: []string{"10.1.0.0/26", "10.0.0.0/26", "10.0.0.0/23"}, reserved: `["10.1.0.1"]`,
			want: []string{"four 256 [10.0.0.0/26]", "(no IPPool) 575 [10.1.0.0/26 10.0.0.0/23] no IPPool contains its blocks"},
		},
		"of two IPPools, the smaller one": {
			ipPools: []string{pool("p", `"cidr":"10.0.0.0/16"`), four}, blocks: []string{"10.0.0.0/26"},
			want: []string{"p 65536 []", "four 256 [10.0.0.0/26]"},
		},
		// The other block may be in it.
		"an IPPool that cannot be decoded": {
			ipPools: []string{four, pool("p", `"cidr":"10.x"`)}, blocks: []string{"10.0.0.0/26", "10.1.0.0/26"},
			want: []string{"four 256 [10.0.0.0/26]"}, err: `IPPool p: cidr: netip.ParsePrefix("10.x"): no '/'`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inShapes(t, func(t *testing.T, sh shape) {
				s := newFixture(t, sh)
				for _, text := range tt.ipPools {
					s.more["ippools"] = append(s.more["ippools"], resource{data: []byte(text)})
				}
				if tt.reserved != "" {
					s.more["ipreservations"] = []resource{{"keep", []byte(`{"spec":{"reservedCIDRs":` + tt.reserved + `}}`)}}
				}
				for range s.backend.List(t.Context()) { //nolint:errcheck // it remembers the IPReservations
				}
				got, err := s.backend.Survey(t.Context(), append(blocksOf(tt.blocks...), ipam.Pool{Name: emptyHandles}))
				if diff := cmp.Diff(tt.want, linesOf(got)); diff != "" {
					t.Errorf("networks (-want +got):\n%s", diff)
				}
				if text := fmt.Sprint(err); text != tt.err && (err != nil || tt.err != "") {
					t.Errorf("error %q, want %q", text, tt.err)
				}
			})
		})
	}
}

// Files with blocks and without an IPPool have no network.
func TestFilesHaveNetworks(t *testing.T) {
	for _, f := range forms {
		d := ipam.Document{APIVersion: strings.TrimPrefix(f.name, "etcd"), Kind: "IPPool"}
		if f.name == "etcd" {
			d = ipam.Document{Key: resourcePrefix + "ippools/one"}
		}
		d.Data = []byte(`{"metadata":{"name":"one"},"spec":{"cidr":"10.0.0.0/24"}}`)
		block := f.document(blocks, "10.0.0.0/30", threeOfFour)
		for _, tt := range []struct {
			docs []ipam.Document
			want []string
		}{
			{[]ipam.Document{d, block}, []string{"one 256 [10.0.0.0/30]"}},
			{[]ipam.Document{block}, nil},
		} {
			found := newFiles(withReservations(tt.docs...), 4)
			got, err := found.Survey(t.Context(), blocksOf("10.0.0.0/30"))
			if !slices.Equal(linesOf(got), tt.want) || err != nil {
				t.Errorf("%s: networks %v, %v; want %v", f.name, linesOf(got), err, tt.want)
			}
		}
	}
}
