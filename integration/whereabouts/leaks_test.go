package whereabouts_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
)

var (
	lan  = plugin.Network{Range: "10.0.0.0/24"}
	dual = plugin.Network{Ranges: []plugin.Range{{Range: "10.0.0.0/24"}, {Range: "fd00:1::/64"}}}
)

// The allocations of pods that are gone go, and nothing beside them.
func TestLeaks(t *testing.T) {
	play(t, []scenario{{
		// The pool stays, with no allocations. A DEL that comes late, when another
		// pod has the address, takes nothing.
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
		name: "one of two entries",
		set: func(f *fixture) {
			f.runs("web-0", f.add(lan, "web-0")...)
			f.add(lan, "web-1")
		},
		want: append(
			both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 inUse PodPresent kept"),
			both("10.0.0.0-24/2", "10.0.0.2", "10.0.0.2 web-1 orphan PodAbsent released")...),
	}, {
		// The ranges share addresses, so what one of them gave the other
		// cannot give.
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
		// That there is no reservation is no error.
		name: "a network without overlapping ranges",
		set: func(f *fixture) {
			f.add(plugin.Network{Range: "10.0.0.0/24", DisableOverlapping: true}, "web-0")
		},
		want: []string{"10.0.0.0-24/1 10.0.0.1 web-0 orphan PodAbsent released"},
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
	}, {
		name: "two interfaces in one pool",
		set: func(f *fixture) {
			f.pod("web-0", cluster.Networks(
				cluster.Attached("shop/net", "net1", f.addTo(lan, "web-0", "net1")...),
				cluster.Attached("shop/net", "net2", f.addTo(lan, "web-0", "net2")...)))
			f.addTo(lan, "web-1", "net1")
			f.addTo(lan, "web-1", "net2")
		},
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 inUse PodPresent kept",
			"10.0.0.0-24/2 10.0.0.2 web-0 inUse PodPresent kept",
			"10.0.0.0-24/3 10.0.0.3 web-1 orphan PodAbsent released",
			"10.0.0.0-24/4 10.0.0.4 web-1 orphan PodAbsent released",
			"10.0.0.1 10.0.0.1 web-0 inUse PodPresent kept",
			"10.0.0.2 10.0.0.2 web-0 inUse PodPresent kept",
			"10.0.0.3 10.0.0.3 web-1 orphan PodAbsent released",
			"10.0.0.4 10.0.0.4 web-1 orphan PodAbsent released",
		},
	}, {
		// An accident wrote the entry at another offset once more.
		name: "an entry and its duplicate",
		set: func(f *fixture) {
			f.writePool("10.0.0.0-24", "10.0.0.0/24", `{
				"1":{"id":"a","podref":"shop/web-0","ifname":"net1"},
				"7":{"id":"a","podref":"shop/web-0","ifname":"net1"}}`)
			f.writeReservation("10.0.0.1", "shop/web-0")
		},
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 orphan PodAbsent released",
			"10.0.0.0-24/7 10.0.0.7 web-0 orphan PodAbsent released",
			"10.0.0.1 10.0.0.1 web-0 orphan PodAbsent released",
		},
	}, {
		name: "a pool that ran dry",
		set: func(f *fixture) {
			small := plugin.Network{Range: "10.0.0.0/30"}
			f.add(small, "web-0")
			f.add(small, "web-1")
			if ips, err := f.addOne(small, "web-2", f.sandbox()); err == nil {
				f.Fatalf("a full pool gave %v", ips)
			}
		},
		want: append(
			both("10.0.0.0-30/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
			both("10.0.0.0-30/2", "10.0.0.2", "10.0.0.2 web-1 orphan PodAbsent released")...),
		then: func(f *fixture) {
			f.wantAddresses(f.add(plugin.Network{Range: "10.0.0.0/30"}, "web-2"), "10.0.0.1")
		},
	}, {
		name: "pools in two namespaces",
		set: func(f *fixture) {
			f.add(lan, "web-0")
			f.must(f.CreateNamespace(f.Context(), "cni"))
			f.plugin = f.pluginFor(f.kubeconfigIn("cni"))
			f.add(lan, "web-1")
			f.runs("web-2", f.add(lan, "web-2")...)
		},
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 orphan PodAbsent released",
			"10.0.0.1 10.0.0.1 web-0 orphan PodAbsent released",
			"cni/10.0.0.0-24/1 10.0.0.1 web-1 orphan PodAbsent released",
			"cni/10.0.0.1 10.0.0.1 web-1 orphan PodAbsent released",
			"cni/10.0.0.0-24/2 10.0.0.2 web-2 inUse PodPresent kept",
			"cni/10.0.0.2 10.0.0.2 web-2 inUse PodPresent kept",
		},
	}})
}

// Either store can leak without the other.
func TestEntriesAndReservationsThatDisagree(t *testing.T) {
	play(t, []scenario{{
		// The DEL was cut short after the pool.
		name: "reservation of a pod that is gone, without an entry",
		set: func(f *fixture) {
			f.add(lan, "web-0")
			f.emptyPool("10.0.0.0-24")
		},
		want: []string{"10.0.0.1 10.0.0.1 web-0 orphan PodAbsent released"},
	}, {
		// The ADD lost its entry and succeeded nevertheless.
		name: "reservation of a live pod, without an entry",
		set: func(f *fixture) {
			f.runs("web-0", f.add(lan, "web-0")...)
			f.emptyPool("10.0.0.0-24")
		},
		want: []string{"10.0.0.1 10.0.0.1 web-0 inUse PodPresent kept"},
	}, {
		// The pod shows the address, so that even the entry that does
		// not name it has to stay: without it the address would be given again.
		name: "entry of a pod that is gone, reservation of one that shows the address",
		set: func(f *fixture) {
			f.writePool("10.0.0.0-24", "10.0.0.0/24", `{"1":{"id":"a","podref":"shop/web-0","ifname":"net1"}}`)
			f.writeReservation("10.0.0.1", "shop/web-1")
			f.runs("web-1", "10.0.0.1")
		},
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 inUse AddressInUse kept",
			"10.0.0.1 10.0.0.1 web-1 inUse PodPresent kept",
		},
	}, {
		name: "entry of a pod that is gone, reservation of one that shows nothing",
		set: func(f *fixture) {
			f.writePool("10.0.0.0-24", "10.0.0.0/24", `{"1":{"id":"a","podref":"shop/web-0","ifname":"net1"}}`)
			f.writeReservation("10.0.0.1", "shop/web-1")
			f.pod("web-1")
		},
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 orphan PodAbsent released",
			"10.0.0.1 10.0.0.1 web-1 inUse PodPresent kept",
		},
	}, {
		name: "entry of a live pod, reservation of one that is gone",
		set: func(f *fixture) {
			f.writePool("10.0.0.0-24", "10.0.0.0/24", `{"1":{"id":"a","podref":"shop/web-0","ifname":"net1"}}`)
			f.writeReservation("10.0.0.1", "shop/web-1")
			f.pod("web-0")
		},
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 inUse PodPresent kept",
			"10.0.0.1 10.0.0.1 web-1 orphan PodAbsent released",
		},
	}})
}

func TestSecondRunFindsNothing(t *testing.T) {
	f := newFixture(t)
	f.runs("web-0", f.add(dual, "web-0")...)
	f.add(dual, "web-1")
	versions := func() map[string]string {
		f.Helper()
		v, err := f.Versions(f.Context())
		f.must(err)
		maps.DeleteFunc(v, func(key, _ string) bool { return strings.HasPrefix(key, "leases.") })
		return v
	}
	if n := count(f.reap("").lines, "released"); n != 4 {
		t.Errorf("%d released, want 4", n)
	}
	before := versions()
	if n := count(f.reap("").lines, "released"); n != 0 {
		t.Errorf("the second run released %d", n)
	}
	f.wantSame("after the second run", before, versions())
}
