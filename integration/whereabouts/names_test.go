package whereabouts_test

import (
	"slices"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

// Two pods get an address of a network, and the second is gone: the plugin's names are understood,
// both for what the first has and for what the second left. Then the first is gone too.
func TestNamesThatThePluginGives(t *testing.T) {
	for _, tt := range []struct {
		name         string
		network      plugin.Network
		entries      [2]string // pool and key
		reservations [2]string
		ips          [2]string
	}{
		{
			"named network", plugin.Network{NetworkName: "mynet", Range: "10.0.0.0/24"},
			[2]string{"mynet-10.0.0.0-24/1", "mynet-10.0.0.0-24/2"},
			[2]string{"mynet-10.0.0.1", "mynet-10.0.0.2"}, [2]string{"10.0.0.1", "10.0.0.2"},
		},
		{
			"range that is written by one of its addresses", plugin.Network{Range: "192.168.2.225/28"},
			[2]string{"192.168.2.224-28/1", "192.168.2.224-28/2"},
			[2]string{"192.168.2.225", "192.168.2.226"}, [2]string{"192.168.2.225", "192.168.2.226"},
		},
		{
			// Only the pools tell that 2001-db8--1 is not 2001:db8::1 of an unnamed network.
			"IPv6 in a network whose name might be a part of it", plugin.Network{NetworkName: "2001", Range: "db8::/64"},
			[2]string{"2001-db8---64/1", "2001-db8---64/2"},
			[2]string{"2001-db8--1", "2001-db8--2"}, [2]string{"db8::1", "db8::2"},
		},
		// A name cannot end with a hyphen for a colon.
		{
			"IPv6 that ends with colons, in a named network",
			plugin.Network{NetworkName: "blue", Range: "fd00:1:2:3::/64", RangeStart: "fd00:1:2:3:4::"},
			[2]string{"blue-fd00-1-2-3---64/1125899906842624", "blue-fd00-1-2-3---64/1125899906842625"},
			[2]string{"blue-fd00-1-2-3-4--0", "blue-fd00-1-2-3-4--1"}, [2]string{"fd00:1:2:3:4::", "fd00:1:2:3:4::1"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			first, second := f.add(tt.network, "web-0"), f.add(tt.network, "web-1")
			f.wantAddresses(append(first, second...), tt.ips[:]...)
			f.runs("web-0", first...)
			before := f.store()
			released := both(tt.entries[1], tt.reservations[1], tt.ips[1]+" web-1 orphan PodAbsent released")
			f.wantLines(append(
				both(tt.entries[0], tt.reservations[0], tt.ips[0]+" web-0 inUse PodPresent kept"),
				released...), f.reap("").lines)
			f.gone("web-0")
			rest := both(tt.entries[0], tt.reservations[0], tt.ips[0]+" web-0 orphan PodAbsent released")
			f.wantLines(rest, f.reap("").lines)
			f.wantStore(before.without(slices.Concat(released, rest)))
		})
	}
}
