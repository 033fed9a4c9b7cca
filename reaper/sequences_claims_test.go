package reaper_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// heir returns a later pod of the name web, on n2. It claims the address of web's
// allocation in an annotation, and has another one in its status.
func heir() reaper.Pod {
	pod := showing(web, ip(9), ip1)
	pod.Node, pod.InStatus, pod.TerminationGrace = "n2", 1, 30*time.Second
	return pod
}

// Promise 1. The pod is deleted by force on a node that is cut off, and runs on. A pod of
// its name on another node claims its address for a while.
func TestClaimDoesNotReplaceTheNodeOfAnEarlierPod(t *testing.T) {
	w := newSequence(namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"})
	first := showing(web, ip1)
	first.Node = "n1"
	w.cluster([]reaper.Pod{first}, ready("n1"), ready("n2"))
	w.run(t)
	w.cluster([]reaper.Pod{heir()}, notReady("n1"), ready("n2"))
	w.run(t)
	for range 3 {
		w.now = w.now.Add(30 * time.Minute)
		w.cluster(nil, notReady("n1"), ready("n2"))
		e := w.entry(t, "whereabouts")
		equal(t, "verdict", decision{e.Verdict, e.Reason, e.Note}, unreachable)
	}
}

// Promise 1. No run saw the earlier pod. The store has the status address of the later one
// for another sandbox, so the claim tells no node.
func TestClaimOfAnotherSandboxTellsNoNode(t *testing.T) {
	primary := calicoOf("n2")
	primary.IP, primary.Owner.Sandbox, primary.Group = ip(9), "s2", "handle-s2"
	w := newSequence(
		namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"},
		namedStore{fixedStore{poolOf(primary)}, "calico"})
	w.cluster([]reaper.Pod{heir()}, notReady("n1"), ready("n2"))
	w.run(t)
	for range 3 {
		w.now = w.now.Add(30 * time.Minute)
		w.cluster(nil, notReady("n1"), ready("n2"))
		e := w.entry(t, "whereabouts")
		equal(t, "verdict", decision{e.Verdict, e.Reason, e.Note}, nodeUnknown("n1"))
	}
}

// Promise 1. The pod may take an hour to end. A pod of its name that takes 30 s claims its
// address for a while.
func TestClaimDoesNotShortenTheTimeToEnd(t *testing.T) {
	w := newSequence(namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"})
	first := showing(web, ip1)
	first.Node, first.TerminationGrace = "n2", time.Hour
	w.cluster([]reaper.Pod{first}, ready("n2"))
	w.run(t)
	w.cluster([]reaper.Pod{heir()}, ready("n2"))
	w.run(t)
	w.cluster(nil, ready("n2"))
	w.run(t)
	w.now = w.now.Add(30 * time.Minute)
	kept(t, "half an hour later", w.entry(t, "whereabouts"))
	w.now = w.now.Add(32 * time.Minute)
	goes(t, "after its hour", w.entry(t, "whereabouts"))
}

// Promise 1. A pod restarts, claims its sandbox before, and leaves its secondary address of
// Calico out of its annotations.
func TestForgedSandboxReleasesNothingThatRuns(t *testing.T) {
	m := newKubeletModel()
	m.create("p-0", "n0", 30*time.Second)
	m.add("p-0")
	m.show("p-0")
	m.pass(time.Hour)
	m.restart("p-0")
	m.show("p-0")
	pod := m.pods["p-0"]
	pod.Sandbox, pod.Interfaces, pod.Addresses = "s2", nil, pod.Addresses[:pod.InStatus]
	for range 3 {
		m.pass(time.Hour)
		if v := m.run(15*time.Minute, -1); v != "" {
			t.Fatalf("%s\n%s", v, strings.Join(m.log, "\n"))
		}
	}
	// The same where another plugin gives the pod the address of its status.
	pod.InStatus, pod.AddressUnknown, pod.Starting = 0, false, false
	for range 3 {
		m.pass(time.Hour)
		if v := m.run(15*time.Minute, -1); v != "" {
			t.Fatalf("%s\n%s", v, strings.Join(m.log, "\n"))
		}
	}
}
