package whereabouts_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

var (
	lan  = plugin.Network{Range: "10.0.0.0/24"}
	dual = plugin.Network{Ranges: []plugin.Range{{Range: "10.0.0.0/24"}, {Range: "fd00:1::/64"}}}
)

// The allocations of pods that are gone are released, and nothing else.
func TestLeaks(t *testing.T) {
	play(t, []scenario{{
		// The pool stays, without allocations. A late DEL, when another pod has the address,
		// removes nothing.
		name: "the only entry of a pool",
		set:  func(f *fixture) { f.add(lan, "web-0") },
		want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
		then: func(f *fixture) {
			f.wantAddresses(f.add(lan, "web-1"), "10.0.0.1")
			before := f.store()
			f.del(lan, "web-0", "sandbox-1", "net1")
			f.wantStore(before)
		},
	}, {
		// The ranges share addresses, so what one gave the other cannot give.
		name: "two ranges that overlap",
		set: func(f *fixture) {
			part := plugin.Network{Range: "10.0.0.0/28"}
			f.runs("web-0", f.add(lan, "web-0")...)
			f.runs("web-1", f.add(part, "web-1")...)
			f.add(lan, "web-2")
		},
		want: append(append(
			both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 inUse PodPresent kept"),
			both("10.0.0.0-28/2", "10.0.0.2", "10.0.0.2 web-1 inUse PodPresent kept")...),
			both("10.0.0.0-24/3", "10.0.0.3", "10.0.0.3 web-2 orphan PodAbsent released")...),
		then: func(f *fixture) {
			f.wantAddresses(f.add(plugin.Network{Range: "10.0.0.0/28"}, "web-3"), "10.0.0.3")
		},
	}, {
		name: "two families",
		set: func(f *fixture) {
			f.runs("web-0", f.add(dual, "web-0")...)
			f.add(dual, "web-1")
		},
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 inUse PodPresent kept",
			"10.0.0.1 10.0.0.1 web-0 inUse PodPresent kept",
			"fd00-1---64/1 fd00:1::1 web-0 inUse PodPresent kept",
			"fd00-1--1 fd00:1::1 web-0 inUse PodPresent kept",
			"10.0.0.0-24/2 10.0.0.2 web-1 orphan PodAbsent released",
			"10.0.0.2 10.0.0.2 web-1 orphan PodAbsent released",
			"fd00-1---64/2 fd00:1::2 web-1 orphan PodAbsent released",
			"fd00-1--2 fd00:1::2 web-1 orphan PodAbsent released",
		},
	}})
}
