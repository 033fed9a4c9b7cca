package whereabouts

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
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

// Promise 7. A dead allocation is released like any other, although an attachment excludes its address: the
// plugin gives that to no pod. A pool that is excluded as a whole is no different.
func TestExcludedAddressesAreNotHeld(t *testing.T) {
	for _, exclude := range []string{"10.0.0.4", "10.0.0.0/24", "?"} {
		_, client := newAPI(t, map[string]http.HandlerFunc{
			"GET ippools": items(leakyPool), "GET overlappingrangeipreservations": items(leaked),
			listAttachments: items(attachment("lan", single(`, "range": "10.0.0.0/24", "exclude": ["`+exclude+`"]`))),
		})
		for _, b := range []ipam.Backend{NewPools(client, Settings{}, atOnce), NewOverlapping(client, Settings{}, atOnce)} {
			listed := 0
			for pool, err := range b.List(t.Context()) {
				if undecoded := (*ipam.ObjectError)(nil); err != nil && !errors.As(err, &undecoded) {
					t.Errorf("%s: %v", exclude, err)
				}
				for _, a := range pool.Allocations {
					listed++
					if a.Protected+pool.Protected != "" {
						t.Errorf("%s: %s of %s is held: %q, %q", exclude, a.IP, b.Name(), a.Protected, pool.Protected)
					}
				}
			}
			if listed == 0 {
				t.Errorf("%s: nothing of %s is listed", exclude, b.Name())
			}
		}
	}
}

// Addresses that the plugin skips because of a configuration are no capacity, and the network says which
// attachment excludes them (parseExcludedRange and IterateForAssignment in its pkg/allocate).
func TestExcludedAddressesAreNoCapacity(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config string
		want   string // the excluded among 10.0.0.1 to 10.0.0.6 and fd00::1 to fd00::6
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
		{"a range with leading zeros", inBlue(`, "range": "010.0.0.0/24", "exclude": ["10.0.0.5"]`), "unknown"},
		{"a range of IPv4 in IPv6", inBlue(`, "range": "::ffff:10.0.0.0/120", "exclude": ["10.0.0.5"]`), "unknown"},
		{"slices of the range for each node", inBlue(`, "range": "10.0.0.0/16", "node_slice_size": "/24", "exclude": ["10.0.0.5"]`), ""}, // the plugin ignores it

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
			s := surveyOf(attachment("lan", tt.config))
			if broken := brokenIn(&s); len(broken) > 0 {
				t.Fatal(broken)
			}
			got := excludedIn(t, s, "excluded by the network attachment shop/lan", testPool(t, "blue", "10.0.0.0/24"), testPool(t, "blue", "fd00::/64"))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("excluded (-want +got):\n%s", diff)
			}
		})
	}
}

// surveyOf returns what is known of the ranges of these network attachments.
func surveyOf(attachments ...string) survey {
	var c configurations
	var r round
	for _, one := range attachments {
		r.attachments = append(r.attachments, c.take(json.RawMessage(one)))
	}
	return r.survey()
}

// brokenIn returns the errors about attachments.
func brokenIn(s *survey) (broken []error) {
	none := func(func(ipam.Pool, error) bool) {}
	for _, err := range s.listed(none) {
		broken = append(broken, err)
	}
	return broken
}

// networkOfPool returns the network of a pool.
func networkOfPool(t *testing.T, s survey, p ipPool) ipam.Network {
	t.Helper()
	u := p.enginePool()
	for _, n := range s.networks([]ipam.Pool{u}) {
		if slices.Contains(n.Pools, u.Name) {
			return n
		}
	}
	t.Fatalf("%s is in no network", u.Name)
	return ipam.Network{}
}

// excludedIn returns those of the first six addresses of each pool that pods do not get, as far as the
// network says why: that must be the text. It is "unknown" for a pool of which that is not known.
func excludedIn(t *testing.T, s survey, why string, pools ...ipPool) string {
	t.Helper()
	var got []string
	for _, p := range pools {
		n := networkOfPool(t, s, p)
		if !n.Known {
			got = append(got, "unknown")
			continue
		}
		for i := range 6 {
			ip, err := addressAt(p.prefix, fmt.Sprint(i+1))
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range n.Withheld {
				if !n.Usable.Contains(ip) && w.Addresses.Contains(ip) {
					got = append(got, ip.String())
					if w.Why != why {
						t.Errorf("%s: %q, want %q", ip, w.Why, why)
					}
					break
				}
			}
		}
	}
	return strings.Join(got, " ")
}

// Attachments may share one range by each excluding the addresses of the other.
func TestAddressIsExcludedIfNoAttachmentOfItsNetworkGivesIt(t *testing.T) {
	const lower = `, "range": "10.0.0.0/29", "exclude": ["10.0.0.4/30"]`
	for _, tt := range []struct {
		name  string
		other string // the IPAM of an attachment besides that of 10.0.0.1 to 10.0.0.3
		want  string // the excluded among 10.0.0.1 to 10.0.0.6
	}{
		{"no other attachment", `, "range": "10.9.0.0/29"`, "10.0.0.4 10.0.0.5 10.0.0.6"},
		{"the other excludes the rest", `, "range": "10.0.0.0/29", "exclude": ["10.0.0.0/30"]`, ""},
		{"the other excludes nothing", `, "range": "10.0.0.0/29"`, ""},
		{"the other is of a part of the range", `, "range": "10.0.0.4/30"`, "10.0.0.4 10.0.0.5 10.0.0.6"},
		{"the other is of a larger range", `, "range": "10.0.0.0/24"`, "10.0.0.4 10.0.0.5 10.0.0.6"},
		{"the other ends earlier", `, "range": "10.0.0.0/29", "range_end": "10.0.0.5"`, "10.0.0.6"},
		{"the other starts and ends", `, "ipRanges": [{"range": "10.0.0.0/29", "range_start": "10.0.0.5", "range_end": "10.0.0.5"}]`, "10.0.0.4 10.0.0.6"},
		{"the other's first address stands before its range", `, "range": "10.0.0.5-10.0.0.5/29"`, "10.0.0.4 10.0.0.6"},
		{"the other starts outside of its range, which the plugin ignores", `, "range": "10.0.0.0/29", "range_start": "10.9.0.1"`, ""},
		{"the other is of another network", `, "range": "10.0.0.0/29", "network_name": "green"`, "10.0.0.4 10.0.0.5 10.0.0.6"},
		{"the other has no range", ``, "10.0.0.4 10.0.0.5 10.0.0.6"},
		{"the other's range is in another form", `, "range": "::ffff:10.0.0.0/125"`, "unknown"},
		{"the other's start is none", `, "range": "10.0.0.0/29", "range_start": "?"`, "unknown"},
		{"the other's range is too small for the plugin", `, "range": "10.0.0.4/31"`, "10.0.0.4 10.0.0.5 10.0.0.6"},
		{"the other gives a slice to each node", `, "range": "10.0.0.0/29", "node_slice_size": "/30"`, "10.0.0.4 10.0.0.5 10.0.0.6"},
		{"the other's slices have a size that is no text", `, "range": "10.0.0.0/29", "node_slice_size": 30`, "10.0.0.4 10.0.0.5 10.0.0.6"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := surveyOf(attachment("lower", single(lower)), attachment("other", single(tt.other)))
			got := excludedIn(t, s, "excluded by the network attachment shop/lower", testPool(t, "", "10.0.0.0/29"))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("excluded (-want +got):\n%s", diff)
			}
		})
	}
}

// An attachment that cannot be decoded is reported. What it may mean is unknown: which addresses pods get
// of the ranges that it names, and of no others.
func TestBrokenAttachmentIsOfTheRangesThatItNames(t *testing.T) {
	const blue4, green4, blue9 = "blue 10.0.0.0/24", "green 10.0.0.0/24", "blue 10.9.0.0/24"
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
			[]string{blue4}},
		{"no address, of the unnamed network", attachment("lan", single(`, "range": "10.0.0.0/24", "exclude": ["10.0.0"]`)), "10.0.0", nil},
		{"no list", attachment("lan", inBlue(`, "range": "10.0.0.0/24", "exclude": "10.0.0.5"`)), "exclude",
			[]string{blue4, green4}},
		{"a network's name of a wrong type", attachment("lan", single(`, "range": "10.0.0.0/24", "network_name": 7`)), "network_name",
			[]string{blue4, green4}},
		{"a range of a wrong type", attachment("lan", single(`, "range": 7, "network_name": "green"`)), "range", nil},
		{"a list for a range", attachment("lan", single(`, "range": ["10.0.0.0/24"], "network_name": "green"`)), "range", []string{blue4, green4}},
		{"ranges of a wrong type", attachment("lan", single(`, "ipRanges": {"range": "10.0.0.0/24"}, "network_name": "green"`)), "ipRanges", []string{blue4, green4}},
		{"a bad exclude in ipRanges", attachment("lan", inBlue(`, "ipRanges": [{"range": "fd00::/64"}, {"range": "10.9.0.0/24", "exclude": ["x"]}]`)),
			"exclude", []string{blue9}},
		{"a spec of a wrong type", `{"metadata": {"namespace": "shop", "name": "lan"}, "spec": {"config": {"range": "10.9.0.0/24"}}}`, "spec", []string{blue9}},
		{"metadata of a wrong type", `{"metadata": {"namespace": "shop", "name": "lan", "uid": 7}}`, "json", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := surveyOf(attachment("ok", single(`, "range": "10.8.0.0/24", "network_name": "blue"`)), tt.attachment)
			errs := brokenIn(&s)
			if len(errs) != 1 {
				t.Fatalf("broken: %q, want one", errs)
			}
			for _, part := range []string{"network attachment shop/lan: ", tt.says, "; correct it, or delete the attachment"} {
				if got := errs[0].Error(); !strings.Contains(got, part) {
					t.Errorf("error = %q, want %q in it", got, part)
				}
			}
			var got []string
			for _, place := range []string{blue4, green4, blue9} {
				network, in, _ := strings.Cut(place, " ")
				if n := networkOfPool(t, s, testPool(t, network, in)); !n.Known {
					got = append(got, place)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("unknown (-want +got):\n%s", diff)
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

func TestRangesByNetworkOfThePool(t *testing.T) {
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
				t.Errorf("a range of the network %q, sliced %v, fits a pool of %q: %v, want %v", tt.network, sliced, tt.of, got, want)
			}
		}
	}
}

// Any configuration is either decoded or broken. The plugin does not give the first address that a decoded
// one excludes.
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
					t.Errorf("%v is excluded, and its first address is given", excluded)
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
