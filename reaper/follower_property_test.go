package reaper_test

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// drawPod returns a pod of a few names, which shows one of a few addresses and sandboxes.
func drawPod(t *rapid.T) reaper.Pod {
	pod := reaper.Pod{
		Ref:      reaper.PodRef{Namespace: "default", Name: fmt.Sprint("app-", rapid.IntRange(0, 3).Draw(t, "name"))},
		UID:      rapid.SampledFrom([]string{"", "old", "new"}).Draw(t, "uid"),
		Node:     rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"),
		Finished: rapid.Bool().Draw(t, "finished"),
		Sandbox:  rapid.SampledFrom([]string{"", "s1", "another"}).Draw(t, "sandbox"),
	}
	for i := range 3 {
		if rapid.Bool().Draw(t, "shows") {
			pod.Addresses = append(pod.Addresses, netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}))
		}
	}
	pod.InStatus = rapid.IntRange(0, len(pod.Addresses)).Draw(t, "in status")
	pod.AddressUnknown = rapid.Bool().Draw(t, "unknown") && !pod.Finished
	pod.LeavesOut = rapid.Bool().Draw(t, "leaves out") && !pod.Finished
	pod.Starting = pod.AddressUnknown && !pod.LeavesOut && rapid.Bool().Draw(t, "starting")
	return pod
}

// Promise 1, 2. The index after some changes gives the decisions that a list of the pods gives
// which are left.
func TestIndexAfterChangesDecidesAsAListDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		as := allocations(3)
		as[0].Owner = reaper.Owner{Sandbox: "another"}
		as[1].Inferred = true
		as[2].Owner.UID = "old"
		inv := inventory(t, fixedStore{poolOf(as...)})
		var changes []reaper.PodChange
		left := make(map[reaper.PodRef]reaper.Pod)
		listed := make(map[reaper.PodRef]reaper.Pod)
		for range rapid.IntRange(0, 4).Draw(rt, "listed") {
			pod := drawPod(rt)
			listed[pod.Ref], left[pod.Ref] = pod, pod
		}
		for range rapid.IntRange(0, 8).Draw(rt, "changes") {
			pod := drawPod(rt)
			if rapid.Bool().Draw(rt, "deleted") {
				delete(left, pod.Ref)
				changes = append(changes, reaper.PodChange{Ref: pod.Ref})
				continue
			}
			left[pod.Ref] = pod
			changes = append(changes, reaper.PodChange{Ref: pod.Ref, Pod: &pod})
		}
		began := time.Now()
		census := func(pods map[reaper.PodRef]reaper.Pod) reaper.Census {
			var all []reaper.Pod
			for _, pod := range pods {
				all = append(all, pod)
			}
			return reaper.NewCensus(began, all, nil, reaper.Node{Name: "n1", Ready: true}, reaper.Node{Name: "n2"})
		}
		terms := impatientWithUnnamed()
		for i, got := range reaper.Judge(noon, terms, inv, census(listed).After(changes...), reaper.Ledger{}) {
			want := reaper.Judge(noon, terms, inv, census(left), reaper.Ledger{})[i]
			if got.Verdict != want.Verdict || got.Reason != want.Reason {
				rt.Errorf("allocation %d: %s %s, want %s %s", i, got.Verdict, got.Reason, want.Verdict, want.Reason)
			}
		}
	})
}

// Promise 1, 4. The sequence of events that releases an address in use is looked for: pods
// come, go and change, the API server has faults, and a pod shows the address for longer
// than a warrant is valid. Then there is no valid warrant, and Renew gives none.
func TestNoSequenceOfEventsReleasesALiveAddress(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			cluster := newFollowed()
			l := newFollowedLook(t, cluster, 1)
			ip := l.orphans[0].Allocation().IP
			var shownSince time.Time // zero while no pod shows the address
			var ws []reaper.Warrant
			name := reaper.PodRef{Namespace: "crowd", Name: "7"}
			check := func() {
				for _, w := range ws {
					if _, err := w.Allocation(); err == nil && !shownSince.IsZero() && time.Since(shownSince) > reaper.Freshness {
						rt.Fatalf("a warrant is valid, and a pod has the address since %v", time.Since(shownSince))
					}
				}
			}
			for range rapid.IntRange(1, 30).Draw(rt, "events") {
				switch rapid.SampledFrom([]string{"show", "hide", "delete", "else", "fault", "heal", "wait", "confirm", "renew"}).Draw(rt, "event") {
				case "show":
					cluster.write(showing(name, ip))
					if shownSince.IsZero() {
						shownSince = time.Now()
					}
				case "hide":
					cluster.write(reaper.Pod{Ref: name})
					shownSince = time.Time{}
				case "delete":
					cluster.remove(name)
					shownSince = time.Time{}
				case "else":
					cluster.writeElse()
				case "fault":
					cluster.fail(drawFault(rt))
				case "heal":
					cluster.fail(func(f *faults) { *f = faults{} })
				case "wait":
					time.Sleep(time.Duration(rapid.IntRange(1, 3000).Draw(rt, "ms")) * time.Millisecond)
				case "confirm":
					more, _ := l.confirmer.Confirm(t.Context(), l.orphans[:1])
					ws = append(ws, more...)
				case "renew":
					if len(ws) == 0 {
						continue
					}
					time.Sleep(time.Nanosecond)
					w, err := ws[rapid.IntRange(0, len(ws)-1).Draw(rt, "which")].Renew(t.Context())
					if err == nil && !shownSince.IsZero() {
						rt.Fatal("Renew gives a warrant while a pod has the address")
					}
					ws = append(ws, w)
				}
				check()
			}
			l.confirmer.Close()
		})
	})
}

// drawFault returns a fault of the API server.
func drawFault(t *rapid.T) func(*faults) {
	return rapid.SampledFrom([]func(*faults){
		func(f *faults) { f.paused = true },
		func(f *faults) { f.delay = 2 * time.Second },
		func(f *faults) { f.silent = true },
		func(f *faults) { f.forgets++ },
		func(f *faults) { f.broken = true },
		func(f *faults) { f.hangs = true },
		func(f *faults) { f.doubles = true },
		func(f *faults) { f.stale = 3 },
		func(f *faults) { f.refuses = true },
	}).Draw(t, "fault")
}
