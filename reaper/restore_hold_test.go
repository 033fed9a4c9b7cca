package reaper_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// remembered makes a restore write the ledger of the harness.
func (h *harness) remembered(o *reaper.RestoreOptions) { o.Ledgers = h.ledgers }

// shortGrace is the grace period of a dueHarness.
const shortGrace = 30 * time.Second

// dueHarness returns a harness in which a run has seen two leaked addresses, whose grace
// period is over, and may release them.
func dueHarness(t *testing.T) (*harness, *backendtest.Memory) {
	t.Helper()
	h, m := waitingHarness(t)
	h.policy.GracePeriod, h.policy.Limits.MaxFraction = &policy.Duration{Duration: shortGrace}, new(1.0)
	h.run(t)
	h.now = noon.Add(shortGrace)
	return h, m
}

// A run after a restore does not release again what was put back.
func TestRestoredAllocationsAreHeld(t *testing.T) {
	held := decision{judge.Held, "Restored", "a restore put it back; held until 2026-03-02T12:00:00Z"}
	byRule := func(p *policy.Policy) {
		p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"*"}}, Restored: policy.Release}}
	}
	byFlag := func(p *policy.Policy) { p.Journal.RestoreHold = &policy.Duration{} }
	for _, tt := range []struct {
		name   string
		after  time.Duration
		policy func(*policy.Policy)
		want   decision
	}{
		{"at once", 0, nil, held},
		{"a day later, but for a second", 24*time.Hour - time.Second, nil, held},
		{"a day later", 24 * time.Hour, nil, decision{judge.Suspected, judge.PodAbsent, ""}},
		{"at once, and a rule ends the hold", 0, byRule, decision{judge.Suspected, judge.PodAbsent, ""}},
		{"at once, without a hold", 0, byFlag, decision{judge.Suspected, judge.PodAbsent, ""}},
		{"after the grace period, without a hold", 30 * time.Second, byFlag, decision{judge.Suspected, judge.PodAbsent, ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReleasedHarness(t)
			r.restore(t, r.remembered)
			r.policy.GracePeriod = &policy.Duration{Duration: 30 * time.Second}
			if tt.policy != nil {
				tt.policy(&r.policy)
			}
			r.now = noon.Add(tt.after)
			report := r.run(t)
			for _, key := range []string{"2", "3", "10.1.0.2"} {
				equal(t, "verdict on "+key, reported(t, report, key), tt.want)
			}
			r.wantRestored(t)
		})
	}
}

// The grace period begins again after the hold: neither the first sight before the release, which
// the ledger still has if the run was killed before forgetting it, nor that during the hold counts.
func TestGraceBeginsAnewAfterARestore(t *testing.T) {
	for _, killed := range []bool{false, true} {
		h, m := dueHarness(t)
		known := h.ledgers.stored
		equal(t, "released", h.run(t).Summary.Released, 2)
		equal(t, "the ledger has forgotten them", h.ledgers.text(t), `{"seen":{},"figures":{"pods":1}}`)
		if killed {
			h.ledgers.stored = known
		}
		h.restore(t, h.remembered)
		h.policy.Journal.RestoreHold = &policy.Duration{}
		equal(t, "suspected at once", h.run(t).Summary.Suspected, 2)
		h.now = h.now.Add(shortGrace - time.Second)
		equal(t, "suspected until it is over", h.run(t).Summary.Suspected, 2)
		h.now = h.now.Add(time.Second)
		equal(t, "released again", h.run(t).Summary.Released, 2)
		equal(t, "entries left", len(contentsOf(t, m)), 1)
	}
}

// restoreBeside restores during a run that does not have the lock.
func (h *harness) restoreBeside(t *testing.T) {
	t.Helper()
	theirs := &memoryLedgers{stored: h.ledgers.stored}
	h.restore(t, func(o *reaper.RestoreOptions) { o.Ledgers = theirs })
	h.ledgers.stored = theirs.stored
}

// A run lists the stores before a restore puts allocations back, and saves its ledger after
// that, or is killed before it can. An earlier run may have left an old first sight there. The
// next run holds what was put back.
func TestRestoreBesideARunIsHeld(t *testing.T) {
	for _, killed := range []bool{false, true} {
		h, m := dueHarness(t)
		known := h.ledgers.stored
		equal(t, "released", h.run(t).Summary.Released, 2)
		h.ledgers.stored = known // that run was killed before it forgot them
		h.now = h.now.Add(shortGrace)
		var restored []byte
		h.ledgers.onLoad = func() error {
			h.ledgers.onLoad = nil
			h.restoreBeside(t)
			restored = h.ledgers.stored
			return nil
		}
		h.run(t)
		if killed {
			h.ledgers.stored = restored
		}
		entries := h.run(t).Entries
		equal(t, "entries", len(entries), 3)
		for _, e := range entries {
			if e.Verdict == judge.Orphaned || e.Verdict == judge.Suspected {
				t.Errorf("killed: %v, %s is %v, want it held", killed, e.Key, e.Verdict)
			}
		}
		equal(t, "entries left", len(contentsOf(t, m)), 3)
	}
}

// A restore puts back what a run released a moment ago. The run then forgets what it
// released, but not the restore.
func TestRestoreOfWhatARunReleasesIsHeld(t *testing.T) {
	h, m := dueHarness(t)
	h.ledgers.onSave = func() error {
		if len(contentsOf(t, m)) > 1 { // nothing is released yet
			return nil
		}
		h.ledgers.onSave = nil
		h.restoreBeside(t)
		return ipam.ErrAgain
	}
	equal(t, "released", h.run(t).Summary.Released, 2)
	equal(t, "held", h.run(t).Summary.Held, 2)
	equal(t, "entries left", len(contentsOf(t, m)), 3)
}

// A hold whose allocation does not come back ends by itself.
func TestHoldWithoutAnAllocationEnds(t *testing.T) {
	h, m := dueHarness(t)
	h.run(t)
	h.restore(t, h.remembered)
	for _, pod := range []string{"gone-1", "gone-2"} {
		if err := m.Free("a", app(pod)); err != nil {
			t.Fatal(err)
		}
	}
	for after, want := range []int{2, 0} {
		h.now = h.now.Add(time.Duration(after) * 24 * time.Hour)
		h.run(t)
		l, err := ledger.Decode(h.ledgers.stored)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "entries of the ledger", l.Len(), want)
	}
}

// A pod that is back ends the hold.
func TestPodThatIsBackEndsTheHold(t *testing.T) {
	r := newReleasedHarness(t)
	r.restore(t, r.remembered)
	pod := census.Pod{Ref: app("gone-1").Pod, UID: app("gone-1").UID}
	r.pods.Add(pod)
	r.run(t)
	r.pods.Remove(pod.Ref)
	rep := r.run(t)
	equal(t, "outcome of the pod that was back", outcomes(rep)["2"], report.Released)
	equal(t, "reason of the other", reported(t, rep, "3").Reason, judge.Reason("Restored"))
}

// What was restored is held, even if its pod is known only from a sibling of its sandbox, which
// stays released.
func TestRestoredEntryIsHeldAlsoIfASiblingNamedItsPod(t *testing.T) {
	a := ipam.Allocation{Key: "1", IP: ip1, Token: "t1", Owner: ipam.Owner{Sandbox: "s1"}}
	w := newSequence(namedStore{fixedStore{poolOf(a)}, "whereabouts"}, namedStore{fixedStore{poolOf(calicoOf("n1"))}, "calico"})
	w.policy.Pods.Unnamed = policy.Release
	w.run(t)
	w.now = w.now.Add(30 * time.Minute)
	e := w.entryIn(t, "whereabouts")
	h := newHarness(namedStore{fixedStore{}, "whereabouts"})
	h.pods, h.ledgers, h.now = w.pods, w.ledgers, w.now
	h.restore(t, h.remembered, func(o *reaper.RestoreOptions) {
		o.Journal.Records = []ipam.Record{{Backend: "whereabouts", Pool: "pool", Key: "1", IP: ip1.String(), Owner: e.Owner}}
	})
	w.backends[1] = namedStore{fixedStore{poolOf()}, "calico"}
	for range 3 {
		w.now = w.now.Add(30 * time.Minute)
		kept(t, "restored", w.entryIn(t, "whereabouts"))
	}
}

// A restore is worth more than its memory.
func TestRestoreWithoutALedgerWarns(t *testing.T) {
	r := newReleasedHarness(t)
	r.ledgers.onLoad = func() error { return errForbidden }
	report := r.restore(t, r.remembered)
	equal(t, "restored", report.Summary.Restored, 3)
	equal(t, "warnings", report.Warnings, []string{
		"the ledger could not be written, so the next run may release the allocations again: hold them with a rule of the policy: " + errForbidden.Error(),
	})
	r.wantRestored(t)
	again := r.restore(t, r.remembered)
	equal(t, "there", again.Summary.Present, 3)
	equal(t, "warnings of a restore that put nothing back", again.Warnings, nil)
}

// Runs by hand that end the hold release in the end, although each run beside them holds what was restored.
// The first sight before a pod was back does not count (promise 4).
func TestHoldIsEndedBesideRunsThatHold(t *testing.T) {
	for _, back := range []bool{false, true} {
		cron, _ := dueHarness(t)
		equal(t, "released", cron.run(t).Summary.Released, 2)
		cron.restore(t, cron.remembered)
		hand := newHarness(cron.backends...)
		hand.pods, hand.ledgers, hand.policy = cron.pods, cron.ledgers, cron.policy
		hand.policy.Journal.RestoreHold = &policy.Duration{}
		later := func() {
			cron.now = cron.now.Add(shortGrace)
			hand.now = cron.now
		}
		later()
		equal(t, "held", cron.run(t).Summary.Held, 2)
		equal(t, "seen by hand", hand.run(t).Summary.Suspected, 2)
		want := 2
		if back {
			pod := census.Pod{Ref: app("gone-1").Pod, UID: app("gone-1").UID}
			cron.pods.Add(pod)
			cron.run(t)
			cron.pods.Remove(pod.Ref)
			want = 1
		}
		later()
		equal(t, "released beside it", cron.run(t).Summary.Released, 0)
		equal(t, "released by hand", hand.run(t).Summary.Released, want)
	}
}

// What a run saw that ends the hold shortens no wait of one that does not.
func TestGraceAfterAHoldDoesNotCountWhatWasSeenDuringIt(t *testing.T) {
	h, _ := dueHarness(t)
	equal(t, "released", h.run(t).Summary.Released, 2)
	h.restore(t, h.remembered)
	hold, over := h.policy.Journal.RestoreHold, h.now.Add(24*time.Hour)
	h.policy.Journal.RestoreHold = &policy.Duration{}
	equal(t, "seen during the hold", h.run(t).Summary.Suspected, 2)
	h.policy.Journal.RestoreHold = hold
	for _, step := range []struct {
		at   time.Time
		want report.Counts
	}{
		{over.Add(-time.Second), report.Counts{Entries: 3, InUse: 1, Held: 2}},
		{over, report.Counts{Entries: 3, InUse: 1, Suspected: 2}},
		{over.Add(shortGrace - time.Second), report.Counts{Entries: 3, InUse: 1, Suspected: 2}},
		{over.Add(shortGrace), report.Counts{Entries: 3, InUse: 1, Planned: 2, Released: 2}},
	} {
		h.now = step.at
		equal(t, step.at.String(), h.run(t).Summary, step.want)
	}
}
