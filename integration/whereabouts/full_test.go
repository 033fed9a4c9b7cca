package whereabouts_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// exhaust makes the plugin give addresses of a network until it has none left.
func (f *fixture) exhaust(n plugin.Network, pods string) (given []string) {
	f.Helper()
	for i := 0; ; i++ {
		ips, err := f.tryAdd(n, fmt.Sprint(pods, "-", i), f.sandbox())
		if err != nil {
			if !strings.Contains(plugin.QuotedT(f, err), "Could not allocate IP in range") {
				f.Fatal(err)
			}
			return given
		}
		given = append(given, ips...)
	}
}

// networkOf makes a dry run, and returns its only Whereabouts network.
func (f *fixture) networkOf() reap.Network {
	f.Helper()
	report := f.mustReap(reap.ExitDone, "", "--dry-run", "--unsafe-ignore-limit=maxFraction,noPods").report
	all := slices.DeleteFunc(slices.Clone(report.Networks), func(n reap.Network) bool { return n.Backend != "whereabouts" })
	if len(all) != 1 {
		f.Fatalf("networks %+v, want one", all)
	}
	return all[0]
}

// The capacity of a network is the number of addresses that the plugin gives, by any attachment; when
// it has none left, nothing is free. Nothing is held because it is excluded, and a restore puts back what the
// plugin may have given before it was. The plugin gives a gateway.
func TestPluginGivesWhatTheReaperExpects(t *testing.T) {
	for _, tt := range []struct {
		name        string
		pool, in    string
		attachments []string         // their IPAM
		networks    []plugin.Network // the same, as the plugin gets them
		want        int
		first, last string // what a restore puts back
	}{{
		"two attachments of one range", "10.0.0.0-28", "10.0.0.0/28",
		[]string{`"range":"10.0.0.0/28","exclude":["10.0.0.4/30","10.0.0.8/29"]`, `"range":"10.0.0.3-10.0.0.5/28"`},
		[]plugin.Network{{Range: "10.0.0.0/28", Exclude: []string{"10.0.0.4/30", "10.0.0.8/29"}}, {Range: "10.0.0.3-10.0.0.5/28"}},
		5, "10.0.0.1", "10.0.0.14",
	}, {
		"IPv6, and a bound outside of the range", "fd00---125", "fd00::/125",
		[]string{`"range":"fd00::/125","range_start":"fd00::4","range_end":"fd00::ff"`},
		[]plugin.Network{{Range: "fd00::/125", RangeStart: "fd00::4", RangeEnd: "fd00::ff"}},
		3, "fd00::4", "fd00::6",
	}, {
		"a gateway, and excludes in each form", "10.0.0.0-28", "10.0.0.0/28",
		[]string{`"range":"10.0.0.0/28","gateway":"10.0.0.1","exclude":["10.0.0.3/31","10.0.0.5","10.0.0.9/30","::ffff:10.0.0.13/128"]`},
		[]plugin.Network{{Range: "10.0.0.0/28", Exclude: []string{"10.0.0.3/31", "10.0.0.5", "10.0.0.9/30", "::ffff:10.0.0.13/128"}}},
		6, "10.0.0.1", "10.0.0.14",
	}, {
		"excludes between bounds", "10.0.0.0-28", "10.0.0.0/28",
		[]string{`"range":"10.0.0.0/28","range_start":"10.0.0.4","range_end":"10.0.0.9","exclude":["10.0.0.6"]`},
		[]plugin.Network{{Range: "10.0.0.0/28", RangeStart: "10.0.0.4", RangeEnd: "10.0.0.9", Exclude: []string{"10.0.0.6"}}},
		5, "10.0.0.4", "10.0.0.9",
	}, {
		"excludes of IPv6 before a bound", "fd00---124", "fd00::/124",
		[]string{`"range":"fd00::/124","range_end":"fd00::c","exclude":["fd00::4/126"]`},
		[]plugin.Network{{Range: "fd00::/124", RangeEnd: "fd00::c", Exclude: []string{"fd00::4/126"}}},
		8, "fd00::1", "fd00::c",
	}} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			for i, ipam := range tt.attachments {
				f.attach(fmt.Sprint("lan-", i), ipam)
			}
			if n := f.networkOf(); n.Capacity.String() != fmt.Sprint(tt.want) || n.Free != n.Capacity || len(n.Pools) != 0 {
				t.Errorf("the network is %+v before the first ADD, want %d addresses, all free", n, tt.want)
			}
			var given []string
			for i, n := range tt.networks {
				given = append(given, f.exhaust(n, fmt.Sprint("pod-", i))...)
			}
			n := f.networkOf()
			if n.Capacity.String() != fmt.Sprint(len(given)) || n.Used != len(given) || n.Free != "0" || len(given) != tt.want {
				t.Errorf("the plugin gave %d addresses %v and has none left, and the network is %+v, want %d", len(given), given, n, tt.want)
			}

			// Every address of the range has an entry and a reservation.
			f.clear()
			in := netip.MustParsePrefix(tt.in)
			entries := map[string]any{}
			var want []string
			for ip, offset := in.Addr(), 0; in.Contains(ip); ip, offset = ip.Next(), offset+1 {
				name := strings.ReplaceAll(ip.String(), ":", "-")
				if strings.HasSuffix(name, "-") {
					name += "0"
				}
				entries[fmt.Sprint(offset)] = map[string]string{"id": "c", "podref": "shop/web"}
				f.writeReservation(name, "shop/web")
				first, last := netip.MustParseAddr(tt.first), netip.MustParseAddr(tt.last)
				if !ip.Less(first) && !last.Less(ip) {
					want = append(want, fmt.Sprintf("%s/%d", tt.pool, offset), name)
				}
			}
			f.writePool(tt.pool, tt.in, text(entries))
			listed := f.listed()
			if len(listed) != 2*len(entries) {
				t.Errorf("%d were listed, want %d entries and their reservations", len(listed), len(entries))
			}
			for _, r := range listed {
				if r.Protected != "" {
					t.Errorf("%s is protected by %q", r.IP, r.Protected)
				}
			}

			records := f.records()
			f.clear()
			f.writePool(tt.pool, tt.in, `{}`)
			var back []string
			for _, line := range f.restore(f.Config, records) {
				name, answer, _ := strings.Cut(line, " ")
				switch {
				case answer == "back":
					back = append(back, name)
				case !strings.Contains(answer, "is not put back: the network attachment shop/lan-"):
					t.Errorf("%s: %s", name, answer)
				}
			}
			f.wantLines(want, slices.Sorted(slices.Values(back)))
		})
	}
}

// A node gets all addresses of its slice, even those that the attachment excludes: the plugin
// ignores the excludes there.
func TestSlicesOfNodesAreNetworksOfTheirPool(t *testing.T) {
	f := newFixture(t)
	f.slice("sliced", "n1")
	f.attach("sliced", `"range":"10.0.0.0/24","node_slice_size":"/28","exclude":["10.0.0.17"]`)
	given := f.exhaust(plugin.Network{Name: "sliced", Range: "10.0.0.0/24", NodeSliceSize: "/28", Node: "n1", Exclude: []string{"10.0.0.17"}}, "pod")
	n := f.networkOf()
	if len(given) != 14 || n.Capacity != "14" || n.Used != 14 || n.Free != "0" || len(n.Pools) != 1 {
		t.Errorf("the plugin gave %v of a slice, and the network is %+v, want all 14 given", given, n)
	}
}
