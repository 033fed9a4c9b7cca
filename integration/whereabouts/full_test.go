package whereabouts_test

import (
	"fmt"
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
		ips, err := f.tryAdd(n, fmt.Sprint(pods, "-", i), f.sandbox(), "net1")
		if err != nil {
			if !strings.Contains(err.Error(), "Could not allocate IP in range") {
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

// The capacity of a network is the number of addresses that the plugin gives, by any attachment.
// When the plugin has none left, nothing is free.
func TestNetworksAreFullWhenThePluginHasNoAddressLeft(t *testing.T) {
	for _, tt := range []struct {
		name        string
		attachments []string
		networks    []plugin.Network // the same, as the plugin gets them
		want        int
	}{
		{
			"two attachments of one range",
			[]string{`"range":"10.0.0.0/28","exclude":["10.0.0.4/30","10.0.0.8/29"]`, `"range":"10.0.0.3-10.0.0.5/28"`},
			[]plugin.Network{{Range: "10.0.0.0/28", Exclude: []string{"10.0.0.4/30", "10.0.0.8/29"}}, {Range: "10.0.0.3-10.0.0.5/28"}},
			5,
		},
		{
			"IPv6, and a bound outside of the range",
			[]string{`"range":"fd00::/125","range_start":"fd00::4","range_end":"fd00::ff"`},
			[]plugin.Network{{Range: "fd00::/125", RangeStart: "fd00::4", RangeEnd: "fd00::ff"}},
			3,
		},
	} {
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
