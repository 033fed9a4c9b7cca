package whereabouts

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// attachment returns a network attachment with a configuration.
func attachment(name, config string) string {
	text, err := json.Marshal(config)
	if err != nil {
		panic(err) // a string always marshals
	}
	return fmt.Sprintf(`{"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
		"metadata": {"namespace": "shop", "name": %q}, "spec": {"config": %s}}`, name, text)
}

// inBlue returns the configuration of one CNI plugin of the network blue with these
// fields of its IPAM.
func inBlue(ipam string) string { return single(`, "network_name": "blue"` + ipam) }

// single returns the configuration of one CNI plugin with these fields of its IPAM.
func single(ipam string) string {
	return `{"cniVersion": "1.0.0", "name": "net", "type": "macvlan", "ipam": {"type": "whereabouts"` + ipam + `}}`
}

// Addresses that the plugin skips because of a configuration are protected (parseExcludedRange
// and IterateForAssignment in its pkg/allocate).
func TestExcludedAddressesAreProtected(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config string
		want   string // the protected among 10.0.0.1 to 10.0.0.6 and fd00::1 to fd00::6
	}{
		{"a CIDR", inBlue(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.2/31"]`), "10.0.0.2 10.0.0.3"},
		{"an address", inBlue(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.5"]`), "10.0.0.5"},
		{"IPv6", inBlue(`, "range": "fd00::/64", "exclude": ["fd00::2", "fd00::4/127"]`), "fd00::2 fd00::4 fd00::5"},
		{"IPv4 in IPv6", inBlue(`, "range": "10.0.0.0/24", "exclude": ["::ffff:10.0.0.4/127"]`), "10.0.0.4 10.0.0.5"},
		{"nothing", inBlue(`, "range": "10.0.0.0/24"`), ""},
		{"field names in another case", inBlue(`, "Range": "10.0.0.0/24", "EXCLUDE": ["10.0.0.5"]`), "10.0.0.5"},

		{"of several ranges", inBlue(`, "ipRanges": [{"range": "10.0.0.0/24", "exclude": ["10.0.0.1"]},
			{"range": "fd00::/64", "exclude": ["fd00::1"]}]`), "10.0.0.1 fd00::1"},
		{"of a range beside others", inBlue(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.1"],
			"ipRanges": [{"range": "fd00::/64", "exclude": ["fd00::1"]}]`), "10.0.0.1 fd00::1"},
		{"a range with a first address", inBlue(`, "range": "10.0.0.3-10.0.0.0/24", "exclude": ["10.0.0.5"]`), "10.0.0.5"},
		{"a range with leading zeros", inBlue(`, "range": "010.0.0.0/24", "exclude": ["10.0.0.5"]`), "10.0.0.5"},
		{"a range of IPv4 in IPv6", inBlue(`, "range": "::ffff:10.0.0.0/120", "exclude": ["10.0.0.5"]`), "10.0.0.5"},
		{"slices of the range for each node", inBlue(`, "range": "10.0.0.0/16", "node_slice_size": "/24", "exclude": ["10.0.0.5"]`), "10.0.0.5"},

		// The plugin gives no address of these pools for these attachments.
		{"a part of the pool's range", inBlue(`, "range": "10.0.0.0/29", "exclude": ["10.0.0.5"]`), ""},
		{"more than the pool's range", inBlue(`, "range": "10.0.0.0/8", "exclude": ["10.0.0.5"]`), ""},
		{"no range", inBlue(`, "exclude": ["0.0.0.0/0", "::/0"]`), ""},
		{"no range beside others", inBlue(`, "exclude": ["0.0.0.0/0"], "ipRanges": [{"range": "10.0.0.0/24", "exclude": ["10.0.0.5"]}]`), "10.0.0.5"},
		{"a range that is no range", inBlue(`, "range": "10.0.0.0/99", "exclude": ["10.0.0.5"]`), ""},
		{"an unnamed network", `{"ipam": {"type": "whereabouts", "range": "10.0.0.0/24", "exclude": ["10.0.0.5"]}}`, ""},

		{"the network's name", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.5"], "network_name": "blue"`), "10.0.0.5"},
		{"another network's name", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.5"], "network_name": "green"`), ""},

		{"the second plugin of a list", `{"name": "net", "plugins": [{"type": "tuning"}, ` +
			inBlue(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.5"]`) + `]}`, "10.0.0.5"},
		{"a plugin inside another", `{"type": "multus", "delegates": [` + inBlue(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.5"]`) + `]}`, "10.0.0.5"},
		{"another IPAM", `{"type": "macvlan", "ipam": {"type": "host-local", "range": "10.0.0.0/24", "exclude": ["10.0.0.5"]}}`, ""},
		{"the configuration is in a file on the nodes", ``, ""},
		{"a text without the plugin's type", `# see /etc/cni/net.d/10-lan.conf`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			excluded := readExclusions([]json.RawMessage{json.RawMessage(attachment("lan", tt.config))})
			if len(excluded.broken) > 0 {
				t.Fatal(excluded.broken)
			}
			const by = "excluded by the network attachment shop/lan"
			got := protectedBy(t, excluded, by, testPool(t, "blue", "10.0.0.0/24"), testPool(t, "blue", "fd00::/64"))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("protected (-want +got):\n%s", diff)
			}
		})
	}
}

// Promise 2. An IPPool from an early version may have its range as IPv4 in IPv6.
func TestExcludeCountsForARangeOfIPv4InIPv6(t *testing.T) {
	prefix, err := parseRange("::ffff:10.0.0.0/120")
	if err != nil {
		t.Fatal(err)
	}
	for exclude, want := range map[string]string{"10.0.0.5": "10.0.0.5", "10.0.0.2/31": "10.0.0.2 10.0.0.3"} {
		excluded := readExclusions([]json.RawMessage{json.RawMessage(attachment("lan", single(`, "range": "10.0.0.0/24", "exclude": ["`+exclude+`"]`)))})
		got := protectedBy(t, excluded, "excluded by the network attachment shop/lan", ipPool{name: "10.0.0.0-24", prefix: prefix})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("protected (-want +got):\n%s", diff)
		}
	}
}

// protectedBy returns the protected addresses among the first six of each pool. Each protection
// must begin with the text.
func protectedBy(t *testing.T, excluded *exclusions, by string, pools ...ipPool) string {
	t.Helper()
	var got []string
	for _, p := range pools {
		u := p.enginePool()
		for n := range 6 {
			ip, err := addressAt(u.Range, fmt.Sprint(n+1))
			if err != nil {
				t.Fatal(err)
			}
			u.Allocations = append(u.Allocations, ipam.Allocation{IP: ip})
		}
		excluded.protect(&u, place{u.Network, u.Range})
		for _, r := range u.Allocations {
			if r.Protected == "" {
				continue
			}
			if !strings.HasPrefix(r.Protected, by) {
				t.Errorf("the protection of %s is %q, want %q", r.IP, r.Protected, by)
			}
			got = append(got, r.IP.String())
		}
	}
	return strings.Join(got, " ")
}

// Two networks may share one range by each excluding the addresses of the other. Then an
// exclusion of one network must not hold the leaks of the other.
func TestAddressIsProtectedIfEveryAttachmentThatGivesItExcludesIt(t *testing.T) {
	const lower = `, "range": "10.0.0.0/29", "exclude": ["10.0.0.4/30"]`
	for _, tt := range []struct {
		name  string
		other string // the IPAM of an attachment besides that of 10.0.0.1 to 10.0.0.3
		want  string // the protected among 10.0.0.1 to 10.0.0.6
	}{
		{"no other attachment", `, "range": "10.9.0.0/29"`, "10.0.0.4 10.0.0.5 10.0.0.6"},
		{"the other excludes the rest", `, "range": "10.0.0.0/29", "exclude": ["10.0.0.0/30"]`, ""},
		{"the other excludes nothing", `, "range": "10.0.0.0/29"`, ""},
		{"the other is of a part of the range", `, "range": "10.0.0.4/30"`, "10.0.0.4"}, // the plugin spares it
		{"the other is of a larger range", `, "range": "10.0.0.0/24"`, ""},
		{"the other ends earlier", `, "range": "10.0.0.0/29", "range_end": "10.0.0.5"`, "10.0.0.6"},
		{"the other starts and ends", `, "ipRanges": [{"range": "10.0.0.0/29", "range_start": "10.0.0.5", "range_end": "10.0.0.5"}]`, "10.0.0.4 10.0.0.6"},
		{"the other's first address stands before its range", `, "range": "10.0.0.5-10.0.0.5/29"`, "10.0.0.4 10.0.0.6"},
		{"the other starts outside of its range, which the plugin ignores", `, "range": "10.0.0.0/29", "range_start": "10.9.0.1"`, ""},

		// If it is uncertain whether the plugin gives the address, it stays.
		{"the other is of another network", `, "range": "10.0.0.0/29", "network_name": "green"`, "10.0.0.4 10.0.0.5 10.0.0.6"},
		{"the other has no range", ``, "10.0.0.4 10.0.0.5 10.0.0.6"},
		{"the other's range is in another form", `, "range": "::ffff:10.0.0.0/125"`, "10.0.0.4 10.0.0.5 10.0.0.6"},
		{"the other's start is none", `, "range": "10.0.0.0/29", "range_start": "?"`, "10.0.0.4 10.0.0.5 10.0.0.6"},
		{"the other's range is too small for the plugin", `, "range": "10.0.0.4/31"`, "10.0.0.4 10.0.0.5 10.0.0.6"},
		{"the other gives a slice to each node", `, "range": "10.0.0.0/29", "node_slice_size": "/30"`, "10.0.0.4 10.0.0.5 10.0.0.6"},
		{"the other's slices have a size that is no text", `, "range": "10.0.0.0/29", "node_slice_size": 30`, "10.0.0.4 10.0.0.5 10.0.0.6"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			excluded := readExclusions([]json.RawMessage{
				json.RawMessage(attachment("lower", single(lower))), json.RawMessage(attachment("other", single(tt.other)))})
			const by = "excluded by the network attachment shop/"
			if diff := cmp.Diff(tt.want, protectedBy(t, excluded, by, testPool(t, "", "10.0.0.0/29"))); diff != "" {
				t.Errorf("protected (-want +got):\n%s", diff)
			}
		})
	}
}

// Promise 2. An attachment that cannot be decoded may exclude any address of the
// ranges that it names, and none of another.
func TestBrokenAttachmentProtectsWhatItMayMean(t *testing.T) {
	const blue4, green4, blue9, overlapping = "blue-10.0.0.0-24", "green-10.0.0.0-24", "blue-10.9.0.0-24", "blue-10.0.0.1"
	lan4 := netip.MustParsePrefix("10.0.0.0/24")
	for _, tt := range []struct {
		name, attachment, says string
		want                   []string
	}{
		{"not JSON", attachment("lan", `{"ipam": {"type": "whereabouts", `), "spec.config: unexpected end", nil},
		{"not JSON, with a range", attachment("lan", `{"ipam": {"type": "whereabouts", "range": "10.9.0.1-10.9.0.0/24", `), "spec.config: unexpected end",
			[]string{blue9}},
		{"not JSON, with a range whose slash is escaped", attachment("lan", `{"ipam": {"type": "whereabouts", "range": "10.9.0.0\/24", `), "spec.config: unexpected end",
			[]string{blue9}},
		{"no address", attachment("lan", inBlue(`, "range": "10.0.0.0/24", "exclude": ["10.0.0"]`)), "10.0.0",
			[]string{blue4, overlapping}},
		{"no address, of the unnamed network", attachment("lan", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0"]`)), "10.0.0", nil},
		{"no list", attachment("lan", inBlue(`, "range": "10.0.0.0/24", "exclude": "10.0.0.5"`)), "exclude",
			[]string{blue4, green4, overlapping}},
		{"a network's name of a wrong type", attachment("lan", single(`, "range": "10.0.0.0/24", "network_name": 7`)), "network_name",
			[]string{blue4, green4, overlapping}},
		{"a range of a wrong type", attachment("lan", single(`, "range": 7, "network_name": "green"`)), "range", nil},
		{"a list for a range", attachment("lan", single(`, "range": ["10.0.0.0/24"], "network_name": "green"`)), "range", []string{blue4, green4, overlapping}},
		{"ranges of a wrong type", attachment("lan", single(`, "ipRanges": {"range": "10.0.0.0/24"}, "network_name": "green"`)), "ipRanges", []string{blue4, green4, overlapping}},
		{"a bad exclude in ipRanges", attachment("lan", inBlue(`, "ipRanges": [{"range": "fd00::/64"}, {"range": "10.9.0.0/24", "exclude": ["x"]}]`)),
			"exclude", []string{blue9}},
		{"a spec of a wrong type", `{"metadata": {"namespace": "shop", "name": "lan"}, "spec": {"config": {"range": "10.9.0.0/24"}}}`, "spec", []string{blue9}},
		{"metadata of a wrong type", `{"metadata": {"namespace": "shop", "name": "lan", "uid": 7}}`, "json", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			excluded := readExclusions([]json.RawMessage{
				json.RawMessage(attachment("ok", single(`, "range": "10.8.0.0/24", "network_name": "blue"`))), json.RawMessage(tt.attachment)})
			if len(excluded.broken) != 1 {
				t.Fatalf("broken: %q, want one", excluded.broken)
			}
			for _, part := range []string{"network attachment shop/lan: ", tt.says, "; correct it, or delete the attachment"} {
				if got := excluded.broken[0].Error(); !strings.Contains(got, part) {
					t.Errorf("error = %q, want %q in it", got, part)
				}
			}
			var got []string
			for _, u := range []ipam.Pool{
				{Name: blue4, Network: "blue", Range: lan4, Allocations: []ipam.Allocation{{IP: netip.MustParseAddr("10.0.0.1")}}},
				{Name: green4, Network: "green", Range: lan4, Allocations: []ipam.Allocation{{IP: netip.MustParseAddr("10.0.0.1")}}},
				{Name: blue9, Network: "blue", Range: netip.MustParsePrefix("10.9.0.0/24"), Allocations: []ipam.Allocation{{IP: netip.MustParseAddr("10.9.0.1")}}},
				{Name: overlapping, Network: "blue", Allocations: []ipam.Allocation{{IP: netip.MustParseAddr("10.0.0.1")}}},
			} {
				excluded.protect(&u, place{u.Network, u.Range})
				protected := u.Allocations[0].Protected
				if protected == "" {
					continue
				}
				got = append(got, u.Name)
				for _, part := range []string{"the network attachment shop/lan may exclude it: ", tt.says, "; correct it, or delete the attachment"} {
					if !strings.Contains(protected, part) {
						t.Errorf("the protection is %q, want %q in it", protected, part)
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("protected pools (-want +got):\n%s", diff)
			}
		})
	}
}

// Promise 7, 9. A tenant's attachment that cannot be decoded is reported, and fails no listing.
func TestBrokenAttachmentFailsNoListing(t *testing.T) {
	odd := attachment("lan", single(`, "ipRanges": [{"range": "10.1.0.0/24", "exclude": ["x"]}, {"range": "10.2.0.0/24", "exclude": ["y"]}]`))
	_, client := newAPI(t, map[string]http.HandlerFunc{
		"GET ippools": items(leakyPool), "GET overlappingrangeipreservations": items(leaked), listAttachments: items(odd),
	})
	inv := ipam.TakeInventory(t.Context(), []ipam.Backend{NewPools(client, Settings{}, atOnce), NewOverlapping(client, Settings{}, atOnce)}, func(string) bool { return false })
	for _, l := range inv.Listings {
		if l.Status != ipam.StatusOK || !l.Whole || len(l.Pools) != 1 || len(l.Undecoded) != 1 || !strings.HasPrefix(l.Undecoded[0].Error(), "network attachment shop/lan: ") {
			t.Errorf("%s is %v with %d pools: %q, want it ok with one, and the attachment named", l.Backend, l.Status, len(l.Pools), l.Undecoded)
		}
	}
}

func TestExclusionsByNetworkOfThePool(t *testing.T) {
	for _, tt := range []struct {
		network, of  string
		want, sliced bool // sliced: for an attachment with slices for nodes
	}{
		{"", unnamed, true, true},
		{"", "blue", false, true}, // blue may be a node
		{"blue", "blue", true, true},
		{"blue", "blue-node-1", false, true},
		{"blue", "blues", false, false},
		{"blue", unnamed, false, false},
		{"blue", "", true, true}, // a pool without a network may be of any
	} {
		for _, sliced := range []bool{false, true} {
			r := attachedRange{network: tt.network, from: netip.MustParsePrefix("10.0.0.0/24"), sliced: sliced}
			want := tt.want && !sliced || tt.sliced && sliced
			if got := r.mayBeOf(place{network: tt.of}); got != want {
				t.Errorf("an exclusion of the network %q, sliced %v, fits a pool of %q: %v, want %v", tt.network, sliced, tt.of, got, want)
			}
		}
	}
}

// Any configuration is either decoded or broken. A decoded exclusion excludes its first
// address.
func FuzzReadConfig(f *testing.F) {
	f.Add(single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0.2/31", "10.0.0.9"], "network_name": "blue"`))
	f.Add(`{"plugins": [` + single(`, "ipRanges": [{"range": "fd00::/64", "exclude": ["fd00::1"]}]`) + `]}`)
	f.Add(`{"ipam": {"type": "whereabouts", "exclude": [""]}}`)
	f.Fuzz(func(t *testing.T, config string) {
		for _, r := range readConfig(config) {
			if r.broken == nil && !json.Valid([]byte(config)) {
				t.Errorf("%v is read from a text that is no JSON", r)
			}
			for _, excluded := range r.exclude {
				if first := excluded.First; !r.exclude.Contains(first) || r.gives().Contains(first) {
					t.Errorf("%v is excluded, and its first address is not protected", excluded)
				}
			}
			if r.first.IsValid() && (!r.from.Contains(r.first) || !r.from.Contains(r.last) || r.broken != nil) {
				t.Errorf("%+v surely gives addresses", r)
			}
		}
	})
}

// An exclude has the addresses that package net sees in it, because the plugin uses that
// package.
func TestExcludesHaveWhatPackageNetSees(t *testing.T) {
	for _, text := range []string{
		"10.0.0.4/30", "::ffff:10.0.0.4/126", "fd00::4/126", "0.0.0.0/0", "::/0", "::ffff:0:0/95", "255.255.255.0/24", "10.0.0.4/1",
	} {
		_, n, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		span, err := parseExclude(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, ip := range []string{"10.0.0.3", "10.0.0.4", "10.0.0.7", "10.0.0.8", "fd00::3", "fd00::4", "fd00::8", "255.255.255.255", "128.0.0.0", "::1"} {
			at := netip.MustParseAddr(ip)
			if got, want := ipam.NewSpans(span).Contains(at), n.Contains(at.AsSlice()); got != want {
				t.Errorf("%s in %s: %t, want %t", ip, text, got, want)
			}
		}
	}
}
