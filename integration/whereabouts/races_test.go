package whereabouts_test

import (
	"slices"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Each row holds back one request of the reaper, changes the cluster, and lets the request go on.
// Afterwards the store must be as that change left it, except for the released allocations.
func TestWhatHappensWhileTheReaperRuns(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(f *fixture)
		hold string // the first request of that kind
		do   func(f *fixture)
		want []string
		may  []string // the report may have these too: stores are listed at the same time
	}{{
		// What the second look finds counts, even a pending pod.
		name: "the pod appears between the first look and the second",
		set:  func(f *fixture) { f.add(lan, "web-0") },
		hold: "get pods",
		do:   func(f *fixture) { f.pod("web-0", pending) },
		want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent returned"),
	}, {
		// The pod comes back after the second look, and its ADD adopts the entry. The reservation's
		// turn comes after that.
		name: "the pod adopts its entry between the second look and the write",
		set:  func(f *fixture) { f.add(lan, "web-0") },
		hold: "patch ippools",
		do:   func(f *fixture) { f.runs("web-0", f.add(lan, "web-0")...) },
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 orphan PodAbsent changed",
			"10.0.0.1 10.0.0.1 web-0 orphan PodAbsent returned",
		},
	}, {
		// The entry is released, and the pod's ADD makes another one for the old reservation, which
		// it takes for its own.
		name: "the pod adopts its reservation before it is marked",
		set:  func(f *fixture) { f.add(lan, "web-0") },
		hold: "patch overlappingrangeipreservations",
		do:   func(f *fixture) { f.runs("web-0", f.add(lan, "web-0")...) },
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 orphan PodAbsent released",
			"10.0.0.1 10.0.0.1 web-0 orphan PodAbsent returned",
		},
	}, {
		name: "a pod is created between the list of pools and that of pods",
		set:  func(f *fixture) { f.add(lan, "web-0") },
		hold: "list pods",
		do:   func(f *fixture) { f.pod("web-0", pending) },
		want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 inUse PodPresent kept"),
	}, {
		// A list of pods from before the list of pools would lack the pod.
		name: "a pod is created and gets an address just before the list of pools",
		set:  func(f *fixture) { f.add(lan, "web-0") },
		hold: "list ippools",
		do:   func(f *fixture) { f.runs("web-1", f.add(lan, "web-1")...) },
		want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
		may:  both("10.0.0.0-24/2", "10.0.0.2", "10.0.0.2 web-1 inUse PodPresent kept"),
	}, {
		name: "another pod gets an address of the pool during the write",
		set:  func(f *fixture) { f.add(lan, "web-0") },
		hold: "patch ippools",
		do:   func(f *fixture) { f.runs("web-1", f.add(lan, "web-1")...) },
		want: both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
	}, {
		// The address is gone, as it should be. The next attempt releases the other one.
		name: "a DEL comes before the write",
		set: func(f *fixture) {
			f.add(lan, "web-0")
			f.add(lan, "web-1")
		},
		hold: "patch ippools",
		do: func(f *fixture) {
			f.del(lan, "web-0", "sandbox-1", "net1")
			if _, held := f.store().content["10.0.0.0-24/1"]; held {
				f.Fatal("the DEL did nothing")
			}
		},
		want: append(
			both("10.0.0.0-24/1", "10.0.0.1", "10.0.0.1 web-0 orphan PodAbsent released"),
			both("10.0.0.0-24/2", "10.0.0.2", "10.0.0.2 web-1 orphan PodAbsent released")...),
	}, {
		// After the release of the entry, another pod gets the address: the reservation with that
		// name is not the one that was listed.
		name: "the reservation is deleted and made again for another pod",
		set:  func(f *fixture) { f.add(lan, "web-0") },
		hold: "patch overlappingrangeipreservations",
		do: func(f *fixture) {
			f.deleteReservation("10.0.0.1")
			f.runs("web-1", f.add(lan, "web-1")...)
		},
		want: []string{
			"10.0.0.0-24/1 10.0.0.1 web-0 orphan PodAbsent released",
			"10.0.0.1 10.0.0.1 web-0 orphan PodAbsent changed",
		},
	}} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			tt.set(f)
			before := f.store()
			var during store
			got := f.reapWhile(tt.hold, func() {
				tt.do(f)
				during = f.store()
			})
			certain := slices.DeleteFunc(slices.Clone(got.lines), func(line string) bool { return slices.Contains(tt.may, line) })
			f.wantLines(tt.want, certain)
			f.wantStore(during.without(before.same(during, got.lines)))
			if got.exit != reap.ExitDone {
				t.Errorf("exit code %d\n%s", got.exit, got.stderr)
			}
		})
	}
}
