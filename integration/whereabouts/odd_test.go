package whereabouts_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// An entry that is not understood is reported and stays, and its siblings go.
func TestOddEntries(t *testing.T) {
	play(t, []scenario{{
		name: "owners that are no pods",
		set: func(f *fixture) {
			f.writePool("10.0.0.0-24", "10.0.0.0/24", `{
				"1":{"id":"a","podref":""},
				"2":{"id":"b","podref":"a/b/c","ifname":"net1"},
				"3":{"id":"c","podref":"justname","ifname":"net1"},
				"4":{"id":"d","podref":"/web-0","ifname":"net1"},
				"5":{"id":"e","podref":"shop/","ifname":"net1"},
				"6":{"id":"f","podref":"shop/web-0","ifname":"net1"}}`)
			f.writeReservation("10.0.0.1", "")
			f.writeReservation("10.0.0.2", "a/b/c")
			f.writeReservation("10.0.0.3", "justname")
			f.writeReservation("10.0.0.6", "shop/web-0")
		},
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 - held OwnerUnknown kept",
			"10.0.0.0-24/2 10.0.0.2 /a/b/c held OwnerUnknown kept",
			"10.0.0.0-24/3 10.0.0.3 /justname held OwnerUnknown kept",
			"10.0.0.0-24/4 10.0.0.4 //web-0 held OwnerUnknown kept",
			"10.0.0.0-24/5 10.0.0.5 /shop/ held OwnerUnknown kept",
			"10.0.0.0-24/6 10.0.0.6 web-0 orphan PodAbsent released",
			"10.0.0.1 10.0.0.1 - held OwnerUnknown kept",
			"10.0.0.2 10.0.0.2 /a/b/c held OwnerUnknown kept",
			"10.0.0.3 10.0.0.3 /justname held OwnerUnknown kept",
			"10.0.0.6 10.0.0.6 web-0 orphan PodAbsent released",
		},
	}, {
		// An entry that names a sandbox and no pod, as those of before
		// 0.6 may, goes where the policy says so, if all that ought to show an
		// address do.
		name:   "owner that is a sandbox, released by policy",
		policy: "pods: {unnamed: release}\n",
		set: func(f *fixture) {
			f.writePool("10.0.0.0-24", "10.0.0.0/24", `{"1":{"id":"a","podref":""},"2":{"id":"b","podref":""}}`)
			f.runs("web-0", "10.0.0.2")
		},
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 - orphan SandboxAbsent released",
			"10.0.0.0-24/2 10.0.0.2 - inUse AddressInUse kept",
		},
	}, {
		name:   "owner that is a sandbox, beside a pod that does not show what it has",
		policy: "pods: {unnamed: release}\n",
		set: func(f *fixture) {
			f.writePool("10.0.0.0-24", "10.0.0.0/24", `{"1":{"id":"a","podref":""}}`)
			f.pod("web-0", cluster.Annotation("k8s.v1.cni.cncf.io/networks", "net"))
		},
		want: []string{"10.0.0.0-24/1 10.0.0.1 - held OwnerUnknown kept"},
	}, {
		// The address part of the range counts as it is written.
		name: "range that is not masked",
		set: func(f *fixture) {
			f.writePool("10.10.0.0-16", "10.10.10.5/16", `{
				"1":{"id":"a","podref":"shop/web-0","ifname":"net1"},
				"2":{"id":"b","podref":"shop/web-1","ifname":"net1"},
				"65535":{"id":"c","podref":"shop/web-2","ifname":"net1"}}`)
			f.writeReservation("10.10.10.6", "shop/web-0")
			f.runs("other", "10.10.10.7")
		},
		want: []string{
			"10.10.0.0-16/1 10.10.10.6 web-0 orphan PodAbsent released",
			"10.10.10.6 10.10.10.6 web-0 orphan PodAbsent released",
			"10.10.0.0-16/2 10.10.10.7 web-1 inUse AddressInUse kept",
			"10.10.0.0-16/65535 - web-2 held Unreadable kept",
		},
	}, {
		// In IPv4 such offsets lie outside of any range.
		name: "keys that are no offsets",
		set: func(f *fixture) {
			f.writePool("10.0.0.0-24", "10.0.0.0/24", `{
				"1":{"id":"a","podref":"shop/web-0","ifname":"net1"},
				"9223372036854775808":{"id":"b","podref":"shop/web-0","ifname":"net1"},
				"256":{"id":"c","podref":"shop/web-0","ifname":"net1"},
				"-1":{"id":"d","podref":"shop/web-0","ifname":"net1"},
				"01":{"id":"e","podref":"shop/web-0","ifname":"net1"},
				"abc":{"id":"f","podref":"shop/web-0","ifname":"net1"},
				"~1":{"id":"g","podref":"shop/web-0","ifname":"net1"}}`)
		},
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 orphan PodAbsent released",
			"10.0.0.0-24/9223372036854775808 - web-0 held Unreadable kept",
			"10.0.0.0-24/256 - web-0 held Unreadable kept",
			"10.0.0.0-24/-1 - web-0 held Unreadable kept",
			"10.0.0.0-24/01 - web-0 held Unreadable kept",
			"10.0.0.0-24/abc - web-0 held Unreadable kept",
			"10.0.0.0-24/~1 - web-0 held Unreadable kept",
		},
	}, {
		// In IPv6 the plugin writes such offsets and cannot read them
		// back: to it, the address is free. It even forgets the entry of the
		// first pod when it writes that of the second; this program does not.
		name: "offsets that the plugin cannot read",
		set: func(f *fixture) {
			upper := plugin.Network{Range: "fd00:1::/64", RangeStart: "fd00:1::8000:0:0:1"}
			f.runs("web-0", f.add(upper, "web-0")...)
			f.add(upper, "web-1")
		},
		want: []string{
			"fd00-1--8000-0-0-1 fd00:1::8000:0:0:1 web-0 inUse PodPresent kept",
			"fd00-1---64/9223372036854775810 fd00:1::8000:0:0:2 web-1 orphan PodAbsent released",
			"fd00-1--8000-0-0-2 fd00:1::8000:0:0:2 web-1 orphan PodAbsent released",
		},
	}, {
		// Of an offset of more than 64 bits the plugin writes the lower 64, so
		// that the entry stands for another address. Its owner protects it all
		// the same, and the reservation tells the truth.
		name: "offsets that the plugin cannot write",
		set: func(f *fixture) {
			wide := plugin.Network{Range: "fd00::/48", RangeStart: "fd00:0:0:1::5"}
			f.runs("web-0", f.add(wide, "web-0")...)
			f.add(wide, "web-1")
		},
		want: []string{
			"fd00---48/5 fd00::5 web-0 inUse PodPresent kept",
			"fd00-0-0-1--5 fd00:0:0:1::5 web-0 inUse PodPresent kept",
			"fd00---48/6 fd00::6 web-1 orphan PodAbsent released",
			"fd00-0-0-1--6 fd00:0:0:1::6 web-1 orphan PodAbsent released",
		},
	}})
}

// A pool that cannot be read is an error of its own, and says which.
func TestPoolThatCannotBeReadHidesNoOther(t *testing.T) {
	for _, cidr := range []string{"", "10.0.0.0", "10.0.0.300/24", "10.0.0.0/24, 10.1.0.0/24"} {
		t.Run(cidr, func(t *testing.T) {
			f := newFixture(t)
			f.writePool("broken", cidr, `{"1":{"id":"a","podref":"shop/web-0","ifname":"net1"}}`)
			f.fill(lan.Range, map[int]string{1: "web-1"})
			before := f.store()
			got := f.mustReap(reap.ExitPartial, "")
			f.wantLines(both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-1 orphan PodAbsent released"), got.lines)
			f.wantStore(before.without(got.lines))
			for _, b := range got.report.Backends {
				want := map[string]string{"whereabouts": "partial", "overlapping": "ok", "calico": "skipped"}[b.Name]
				if b.Status != want || (want == "partial") != strings.Contains(b.Message, "kube-system/broken: spec.range") {
					t.Errorf("backend %s is %s: %q, want %s", b.Name, b.Status, b.Message, want)
				}
			}
		})
	}
}

// The content of the pool is not known, and so it is not known whether the
// reservation is the last object that keeps the address for its owner.
func TestReservationStaysWhoseEntryCannotBeRead(t *testing.T) {
	play(t, []scenario{{
		name: "since its pool cannot",
		set: func(f *fixture) {
			f.add(lan, "web-0")
			f.patch("ippools", "10.0.0.0-24", types.MergePatchType, `{"spec":{"range":"10.0.0.0"}}`)
		},
		exit: reap.ExitPartial,
		want: []string{"10.0.0.1 10.0.0.1 web-0 orphan PodAbsent kept"},
	}})
}
