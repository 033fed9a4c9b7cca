package judge_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// Promise 1. The mirror of a static pod is deleted, and something denies the next one. Its kubelet runs
// the pod all the same, until the node is started anew.
func TestStaticPodKeepsItsAddressesWithoutItsMirror(t *testing.T) {
	type nodes = []census.Node
	for _, tt := range []struct {
		name  string
		first census.Node // while the mirror is there
		later nodes
		keeps bool
	}{
		{"its node has not been rebooted", booted("b1"), nodes{booted("b1")}, true},
		{"its node does not tell its boot", booted(""), nodes{booted("")}, true},
		{"its node tells its boot no more", booted("b1"), nodes{booted("")}, true},
		{"its node is ready, and has the taint", booted("b1"), nodes{tainted(booted("b1"))}, true},
		{"its node was started anew", booted("b1"), nodes{booted("b2")}, false},
		{"its node is fenced", booted("b1"), nodes{{Name: "n1", Boot: "b1", OutOfService: true}}, false},
		{"its node is gone", booted("b1"), nodes{ready("n2")}, false},
	} {
		for _, stuck := range []policy.Disposition{policy.Hold, policy.Release} {
			t.Run(tt.name+", "+string(stuck), func(t *testing.T) {
				w := newSequence(
					namedStore{fixedStore{poolOf(calicoOf("n1"))}, "calico"},
					namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"})
				w.policy.Pods.Stuck = stuck
				w.cluster([]census.Pod{mirrored()}, tt.first)
				w.run(t)
				for range 4 {
					w.now = w.now.Add(time.Hour)
					w.cluster(nil, tt.later...)
					w.run(t)
				}
				want := judge.PodAbsent
				if tt.keeps && stuck == policy.Hold {
					want = judge.StaticPod
				}
				for _, e := range w.run(t) {
					equal(t, "reason in "+e.Allocation.Backend, e.Reason, want)
				}
			})
		}
	}
}

// Promise 1. What a mirror had is held until a mirror of its name has ended, or shows a later sandbox.
// Anyone may create a pod of that name, and give it the annotation of a mirror.
func TestOnlyAMirrorEndsTheHoldOfAMirror(t *testing.T) {
	ended, starting, back := finished(mirrored()), waiting(0), mirrored()
	starting.Mirror, starting.Created = true, time.Time{}
	back.Sandbox, back.Addresses = "s2", []netip.Addr{ip9}
	heir, forged, over := back, back, census.Pod{Ref: web, Node: "n1", Finished: true}
	heir.Mirror, forged.InStatus = false, 0
	deleted := over
	deleted.Deadline = noon
	hung := hanging()
	for _, tt := range []struct {
		name        string
		first, next census.Pod
		present     judge.Reason // while the next pod is there
		gone        judge.Reason // after it
	}{
		{"it is back", mirrored(), mirrored(), judge.PodPresent, judge.StaticPod},
		{"it is back, and not up", mirrored(), starting, judge.PodPresent, judge.StaticPod},
		{"it is back with a later sandbox", mirrored(), back, judge.SandboxReplaced, judge.StaticPod},
		{"it has ended", mirrored(), ended, judge.PodFinished, judge.PodAbsent},
		{"another pod has a later sandbox", mirrored(), heir, judge.StaticPod, judge.StaticPod},
		{"another pod says that it is a mirror", mirrored(), forged, judge.PodPresent, judge.StaticPod},
		{"another pod has ended", mirrored(), over, judge.PodFinished, judge.StaticPod},
		{"another pod was deleted, and has ended", mirrored(), deleted, judge.PodFinished, judge.StaticPod},
		{"another pod of that name had hung before", hung, mirrored(), judge.PodPresent, judge.StaticPod},
		{"another pod of that name had hung before, and the mirror has a later sandbox", hung, back, judge.TerminationStuck, judge.TerminationStuck},
	} {
		t.Run(tt.name, func(t *testing.T) {
			later := calicoOf("n1")
			later.Key, later.IP, later.Token, later.Group, later.Owner.Sandbox, later.Created = "9", ip9, "c9", "handle-s2", "s2", noon.Add(-time.Minute)
			w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1"), later)}, "calico"})
			w.cluster([]census.Pod{tt.first}, booted("b1"))
			w.run(t)
			w.now = w.now.Add(time.Minute)
			w.cluster([]census.Pod{tt.next}, booted("b1"))
			equal(t, "reason", w.entryIn(t, "calico").Reason, tt.present)
			w.now = w.now.Add(time.Minute)
			w.cluster(nil, booted("b1"))
			equal(t, "reason after it", w.entryIn(t, "calico").Reason, tt.gone)
		})
	}
}

// Promise 1. A pod hung, and a static pod has its name now. No mirror shows that the sandbox of the
// first one is dead.
func TestMirrorDoesNotEndTheHoldOfAPodThatHung(t *testing.T) {
	later := calicoOf("n1")
	later.Key, later.IP, later.Token, later.Group, later.Owner.Sandbox, later.Created = "9", ip9, "c9", "handle-s2", "s2", noon.Add(-time.Minute)
	hides, shows := mirrored(), mirrored()
	hides.Sandbox, hides.Addresses, hides.InStatus, hides.AddressUnknown = "", nil, 0, true
	shows.Sandbox, shows.Addresses = "s2", []netip.Addr{ip9}
	w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1"), later)}, "calico"})
	for _, pod := range []census.Pod{hanging(), hides, shows} {
		w.cluster([]census.Pod{pod}, booted("b1"))
		w.run(t)
	}
	equal(t, "reason", w.entryIn(t, "calico").Reason, judge.TerminationStuck)
}

// Promise 1. The latest boot counts for a mirror: its sandbox is from that one, and may have adopted the
// allocation.
func TestStaticPodThatWasStartedAnewKeepsItsAddress(t *testing.T) {
	w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1"))}, "calico"})
	for _, boot := range []string{"b1", "b2"} {
		w.cluster([]census.Pod{mirrored()}, booted(boot))
		w.run(t)
	}
	w.now = w.now.Add(time.Hour)
	w.cluster(nil, booted("b2"))
	equal(t, "reason", w.entryIn(t, "calico").Reason, judge.StaticPod)
}

// Promise 1. The mirror of a static pod that no run saw is force-deleted. Its sandbox keeps running,
// and its kubelet makes the mirror again within 90 s.
func TestMirrorPodMayBeMissing(t *testing.T) {
	mirror := calicoOf("n1")
	mirror.Owner.Pod.Name = "web-n1"
	given(entry(func(a *ipam.Allocation) { *a = mirror }), nodes(ready("n1")), waits(0, 0)).ripens(t, 3*time.Minute)
}

// Promise 1. A node was fenced, and is ready again without a reboot: its static pod runs, so what was
// suspected meanwhile is not due when the node is fenced again.
func TestHoldOfAStaticPodRestartsItsGracePeriod(t *testing.T) {
	fenced := tainted(booted("b1"))
	fenced.Ready = false
	w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1"))}, "calico"})
	w.cluster([]census.Pod{mirrored()}, booted("b1"))
	w.run(t)
	for _, n := range []census.Node{fenced, booted("b1"), fenced} {
		w.now = w.now.Add(time.Hour)
		w.cluster(nil, n)
		kept(t, "", w.entryIn(t, "calico"))
	}
}
