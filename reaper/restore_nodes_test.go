package reaper_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// restoredOnLostNode returns a harness in which a run released 10.0.0.2 of web, which an earlier
// run saw on n1. Then n1 became unreachable, and a restore put the address back, with another
// token.
func restoredOnLostNode(t *testing.T) (*harness, *backendtest.Memory) {
	t.Helper()
	h, m := memoryHarness(t)
	as := h.addPods(t, m, "live-1", "web")
	h.pods.Add(podOn("n1", "web", as[1]))
	h.pods.AddNodes(ready("n1"), ready("n2"))
	h.run(t)
	h.pods.Remove(app("web").Pod)
	equal(t, "outcome", outcomes(h.run(t))["2"], report.Released)
	equal(t, "node of the record", h.journal.Read().Records[0].Node, "n1")
	h.pods.AddNodes(notReady("n1"))
	h.restore(t, h.remembered)
	return h, m
}

// Promise 1, 2. The ledger forgets the node of what a run releases. A restore knows it again
// from the journal.
func TestRestoreKnowsTheNodeAgain(t *testing.T) {
	withoutHold := func(h *harness) { h.policy.Journal.RestoreHold = &policy.Duration{} }
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *harness, *backendtest.Memory)
		want   decision
	}{
		{"at once", func(_ *testing.T, h *harness, _ *backendtest.Memory) { withoutHold(h) }, unreachable},
		{"after the hold", func(t *testing.T, h *harness, _ *backendtest.Memory) {
			h.pods.AddNodes(ready("n1"))
			for range 3 {
				equal(t, "reason during the hold", reported(t, h.run(t), "2").Reason, "Restored")
			}
			h.pods.AddNodes(notReady("n1"))
			h.now = noon.Add(24 * time.Hour)
		}, unreachable},
		{"after another restore, which puts back nothing", func(t *testing.T, h *harness, _ *backendtest.Memory) {
			h.restore(t, h.remembered)
			withoutHold(h)
		}, unreachable},
		{"the node is back", func(_ *testing.T, h *harness, _ *backendtest.Memory) {
			withoutHold(h)
			h.pods.AddNodes(ready("n1"))
		}, decision{judge.Suspected, judge.PodAbsent, ""}},
		{"the pod came elsewhere and went before a run saw its address there", func(t *testing.T, h *harness, m *backendtest.Memory) {
			withoutHold(h)
			later := app("web")
			later.Sandbox = "sandbox-later"
			if _, err := m.Reserve("a", later); err != nil {
				t.Fatal(err)
			}
		}, unknownNode},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, m := restoredOnLostNode(t)
			h.policy.GracePeriod = &policy.Duration{Duration: shortGrace}
			tt.change(t, h, m)
			rep := h.run(t)
			equal(t, "decision", reported(t, rep, "2"), tt.want)
			if tt.want != unknownNode {
				equal(t, "node", entryOf(t, rep, "2").Owner.Node, "n1")
			}
		})
	}
}

// A run lists the store before a restore puts an allocation back, and saves its ledger after that.
func TestRestoreBesideARunKnowsTheNodeAgain(t *testing.T) {
	h, m := dueHarness(t)
	pod := podOn("n1", "gone-1")
	pod.Addresses = append(pod.Addresses, ip2)
	h.pods.Add(pod)
	h.pods.AddNodes(ready("n1"))
	h.run(t)
	h.pods.Remove(pod.Ref)
	for range 2 {
		h.run(t)
		h.now = h.now.Add(shortGrace)
	}
	equal(t, "entries left", len(contentsOf(t, m)), 1)
	h.ledgers.onLoad = func() error {
		h.ledgers.onLoad = nil
		h.restoreBeside(t)
		return nil
	}
	h.run(t)
	h.pods.AddNodes(notReady("n1"))
	h.run(t) // the hold
	h.now = h.now.Add(24 * time.Hour)
	equal(t, "decision", reported(t, h.run(t), "2"), unreachable)
}

// Promise 1. A pod hung, or was a mirror, in a boot of its node that is over, so its address was
// released. A restore remembers the boot too: the node may no longer report it.
func TestRestoreKnowsAgainThatASandboxMayOutliveItsPod(t *testing.T) {
	for want, pod := range map[judge.Reason]census.Pod{judge.TerminationStuck: hanging(), judge.StaticPod: mirrored()} {
		w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1"))}, "calico"})
		w.policy.Journal.RestoreHold = &policy.Duration{}
		w.cluster([]census.Pod{pod}, booted("b1"))
		w.run(t)
		for range 2 {
			w.now = w.now.Add(time.Hour)
			w.cluster(nil, booted("b2"))
			w.run(t)
		}
		equal(t, "boot of the record", w.journal.Read().Records[0].Boot, "b1")
		w.restore(t, w.remembered)
		w.cluster(nil, booted("b2"))
		equal(t, "reason after a restart", w.entryIn(t, "calico").Reason, judge.PodAbsent)
		w.cluster(nil, booted(""))
		equal(t, "reason", w.entryIn(t, "calico").Reason, want)
	}
}

// Promise 1. The store has its own names for nodes. Such a name is not that of a node on which a
// run saw the pod, even after a restore.
func TestRestoreDoesNotBelieveTheNodeOfTheStore(t *testing.T) {
	a := calicoOf("n1-calico")
	w := newSequence(namedStore{fixedStore{poolOf(a)}, "calico"})
	for range 2 {
		w.run(t)
		w.now = w.now.Add(time.Hour)
	}
	equal(t, "node of the record", w.journal.Read().Records[0].Node, "")
	equal(t, "node of its owner", w.journal.Read().Records[0].Owner.Node, "n1-calico")
}

// Promise 1. A pod came back on n2 and adopted its entry, while the reservation of its address
// still has the sandbox on n1. n2 was cut off, and the pod force-deleted, before a run saw it
// there. Where the old sandbox was says nothing about the new one.
func TestReservationDoesNotTellTheNodeOfALaterSandbox(t *testing.T) {
	entry, reservation := webAllocation(), webAllocation()
	reservation.Token, entry.Group, reservation.Group = "r1", "g", "g"
	for _, restored := range []bool{false, true} {
		w := newSequence(namedStore{fixedStore{poolOf(entry)}, "whereabouts"}, namedStore{fixedStore{poolOf(reservation)}, "overlapping"})
		pod := podOn("n1", "web", entry)
		pod.Ref = web
		w.cluster([]census.Pod{pod}, ready("n1"), ready("n2"))
		w.run(t)
		if restored {
			for range 2 {
				w.now = w.now.Add(time.Hour)
				w.cluster(nil, ready("n1"), ready("n2"))
				w.run(t)
			}
			w.policy.Journal.RestoreHold = &policy.Duration{}
			w.restore(t, w.remembered)
		}
		later := entry
		later.Token, later.Owner.Sandbox = "t2", "s2"
		w.backends[0] = namedStore{fixedStore{poolOf(later)}, "whereabouts"}
		for range 4 {
			w.now = w.now.Add(time.Hour)
			w.cluster(nil, ready("n1"), notReady("n2"))
			for _, e := range w.run(t).Entries {
				kept(t, "of "+e.Backend, e)
			}
		}
		equal(t, "reason", w.entryIn(t, "whereabouts").Note, "its node is unknown, and these are not ready: n2")
	}
}

// Promise 1. A dry run lists the store; another run releases the address, and a restore puts it
// back with another token. Then the dry run saves its ledger. It has seen the allocation as it was
// before the release, and keeps what the restore wrote all the same.
func TestRestoreOfWhatARunHasListedKnowsTheNodeAgain(t *testing.T) {
	h, m := memoryHarness(t)
	as := h.addPods(t, m, "live-1", "web")
	h.pods.Add(podOn("n1", "web", as[1]))
	h.pods.AddNodes(ready("n1"), ready("n2"))
	h.run(t)
	h.pods.Remove(app("web").Pod)
	h.ledgers.onLoad = func() error {
		h.ledgers.onLoad = nil
		o := h.options()
		theirs := &memoryLedgers{stored: h.ledgers.stored}
		o.ID, o.Ledgers = "run-2", theirs
		rep, err := reaper.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "outcome", outcomes(rep)["2"], report.Released)
		h.ledgers.stored = theirs.stored
		h.restoreBeside(t)
		return nil
	}
	o := h.options()
	o.Policy.DryRun, o.Remember = new(true), true
	if _, err := reaper.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	h.now = h.now.Add(24 * time.Hour)
	h.pods.AddNodes(notReady("n1"))
	h.policy.Nodes.Unknown = policy.Release
	for range 3 {
		h.now = h.now.Add(time.Hour)
		rep := h.run(t)
		equal(t, "outcome", outcomes(rep)["2"], report.Kept)
		equal(t, "decision", reported(t, rep, "2"), unreachable)
	}
}
