package reaper_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// waitingHarness returns a harness with one pod that exists, two that do not, and a
// grace period of 15 minutes.
func waitingHarness(t *testing.T) (*harness, *backendtest.Memory) {
	t.Helper()
	h, m := memoryHarness(t, "live-1", "gone-1", "gone-2")
	h.policy.GracePeriod = policy.Default().GracePeriod
	return h, m
}

// Promise 4.
func TestRunsTogetherWaitOutTheGracePeriod(t *testing.T) {
	h, _ := waitingHarness(t)
	for _, step := range []struct {
		after time.Duration
		want  report.Counts
		saves int
	}{
		{0, report.Counts{Entries: 3, InUse: 1, Suspected: 2}, 1},
		{atLeast - time.Second, report.Counts{Entries: 3, InUse: 1, Suspected: 2}, 2},
		{15 * time.Minute, report.Counts{Entries: 3, InUse: 1, Planned: 2, Released: 2}, 4},
		{16 * time.Minute, report.Counts{Entries: 1, InUse: 1}, 5},
		{17 * time.Minute, report.Counts{Entries: 1, InUse: 1}, 6},
	} {
		h.now = noon.Add(step.after)
		equal(t, "after "+step.after.String(), h.run(t).Summary, step.want)
		equal(t, "writes of the ledger after "+step.after.String(), h.ledgers.saves, step.saves)
	}
	equal(t, "ledger", h.ledgers.text(t), `{"seen":{},"figures":{"pods":1}}`)
}

// Promise 2, 8.
func TestDamagedLedgerCountsAsFirstSeenNow(t *testing.T) {
	h, _ := waitingHarness(t)
	h.run(t)
	h.ledgers.stored = h.ledgers.stored[:len(h.ledgers.stored)-5]
	h.now = noon.Add(time.Hour)
	rep := h.run(t)
	equal(t, "summary", rep.Summary, report.Counts{Entries: 3, InUse: 1, Suspected: 2})
	equal(t, "warnings", len(rep.Warnings), 1)
	h.now = noon.Add(time.Hour + 15*time.Minute)
	equal(t, "released later", h.run(t).Summary.Released, 2)
}

// Promise 2, 8. A ledger that could not be read may be whole. The run does not replace
// it.
func TestLedgerThatCannotBeLoadedIsNotOverwritten(t *testing.T) {
	h, m := waitingHarness(t)
	h.run(t)
	stored, before, saves := h.ledgers.text(t), contentsOf(t, m), h.ledgers.saves
	h.ledgers.onLoad = func() error { return errForbidden }
	h.now = noon.Add(time.Hour)
	rep, failures := h.partial(t)
	equal(t, "failures", failures, []string{"load the ledger: " + errForbidden.Error()})
	equal(t, "summary", rep.Summary, report.Counts{Entries: 3, InUse: 1, Suspected: 2})
	waits := slices.IndexFunc(rep.Entries, func(e report.Entry) bool { return e.Verdict == judge.Suspected })
	x, err := report.Explain(rep, report.Question{Address: rep.Entries[waits].IP}, nil, nil)
	equal(t, "error", err, nil)
	equal(t, "remedies", x.Found[0].Remedies, []judge.Remedy{{Says: "let ip-reaper read the ledger, which may say when its grace period began"}})
	equal(t, "store", contentsOf(t, m), before)
	equal(t, "ledger", h.ledgers.text(t), stored)
	equal(t, "writes of the ledger", h.ledgers.saves, saves)

	h.ledgers.onLoad = nil
	equal(t, "released once it can", h.run(t).Summary.Released, 2)
}

// Promise 9.
func TestLedgerThatCannotBeSavedIsAFailureOfItsOwn(t *testing.T) {
	h, _ := waitingHarness(t)
	h.ledgers.onSave = func() error { return errForbidden }
	rep, failures := h.partial(t)
	equal(t, "failures", failures, []string{"save the ledger: " + errForbidden.Error()})
	equal(t, "summary", rep.Summary, report.Counts{Entries: 3, InUse: 1, Suspected: 2})
	equal(t, "writes of the ledger", h.ledgers.saves, 2)
}

// Promise 8. Of two concurrent runs, one keeps what the other saved.
func TestLedgerThatAnotherRunWroteIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, m := waitingHarness(t)
		earlier := *h
		earlier.ledgers, earlier.now = &memoryLedgers{}, noon.Add(-10*time.Minute)
		h.ledgers.onSave = func() error {
			h.ledgers.onSave = nil
			earlier.run(t)
			h.ledgers.stored = earlier.ledgers.stored
			return fmt.Errorf("%w: conflict", ipam.ErrAgain)
		}
		h.run(t)
		equal(t, "writes of the ledger", h.ledgers.saves, 2)
		equal(t, "ledger", h.ledgers.text(t), earlier.ledgers.text(t))

		h.addPods(t, m, "gone-3")
		h.run(t)
		l, err := ledger.Decode(h.ledgers.stored)
		equal(t, "error", err, nil)
		equal(t, "remembered", l.Len(), 3)
		h.now = noon.Add(5 * time.Minute)
		equal(t, "released", h.run(t).Summary.Released, 2)
	})
}

// Promise 2, 8.
func TestLedgerThatCannotBeLoadedAfterAConflictIsNotOverwritten(t *testing.T) {
	h, _ := waitingHarness(t)
	h.ledgers.onSave = func() error {
		h.ledgers.onLoad = func() error { return errForbidden }
		h.ledgers.stored = []byte("theirs")
		return fmt.Errorf("%w: conflict", ipam.ErrAgain)
	}
	_, failures := h.partial(t)
	equal(t, "failures", failures, []string{"save the ledger: " + errForbidden.Error()})
	equal(t, "writes of the ledger", h.ledgers.saves, 1)
	equal(t, "ledger", string(h.ledgers.stored), "theirs")
}

// Promise 8. A release that failed needs no second grace period.
func TestFailedReleaseNeedsNoSecondGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, m := waitingHarness(t)
		h.run(t)
		h.now = noon.Add(15 * time.Minute)
		m.OnRequest(failing(errConnection, "release"))
		report, _ := h.partial(t)
		equal(t, "failed", report.Summary.Failed, 2)
		m.OnRequest(nil)
		h.now = noon.Add(16 * time.Minute)
		equal(t, "released by the next run", h.run(t).Summary.Released, 2)
	})
}

// Promise 2. The ledger may know of a node that is cut off.
func TestNothingIsReleasedWithoutTheLedger(t *testing.T) {
	h, m := waitingHarness(t)
	h.policy.GracePeriod = &policy.Duration{}
	before := contentsOf(t, m)
	h.ledgers.onLoad = func() error { return errForbidden }
	rep, failures := h.partial(t)
	equal(t, "failures", failures, []string{"load the ledger: " + errForbidden.Error()})
	equal(t, "summary", rep.Summary, report.Counts{Entries: 3, InUse: 1, Planned: 2, Failed: 2})
	equal(t, "store", contentsOf(t, m), before)
}

// Promise 1. A store that could not be listed in one run loses neither the nodes nor the
// times of its allocations.
func TestStoreThatWasNotListedLosesNoMemory(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  func(*testing.T, *harness, *backendtest.Memory)
	}{
		{"it failed", func(t *testing.T, h *harness, m *backendtest.Memory) {
			m.OnRequest(func(string) error { return errConnection })
			h.partial(t)
			m.OnRequest(nil)
		}},
		{"the policy disabled it", func(t *testing.T, h *harness, _ *backendtest.Memory) {
			h.policy.Backends = map[string]policy.Backend{"memory": {Enabled: policy.Off}}
			h.run(t)
			h.policy.Backends = nil
		}},
		{"it was absent", func(t *testing.T, h *harness, m *backendtest.Memory) {
			m.OnRequest(func(string) error { return ipam.ErrNotInstalled })
			h.run(t)
			m.OnRequest(nil)
		}},
		{"the program did not have it", func(t *testing.T, h *harness, _ *backendtest.Memory) {
			all := h.backends
			h.backends = all[1:]
			h.run(t)
			h.backends = all
		}},
		{"a part of it failed", func(t *testing.T, h *harness, _ *backendtest.Memory) {
			all := h.backends
			broken := scriptedStore{name: "memory", steps: []step{{err: &ipam.PoolError{Pool: "a", Err: errConnection}}}}
			h.backends = []ipam.Backend{broken, all[1]}
			h.partial(t)
			h.backends = all
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, second := backendtest.NewMemory("memory"), backendtest.NewMemory("second")
			h := newHarness(m.Backend(), second.Backend())
			h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
			as := h.addPods(t, m, "live-1", "web", "gone-1")
			h.pods.Add(podOn("n1", "web", as[1]))
			h.pods.AddNodes(ready("n1"), ready("n2"))
			h.run(t)
			h.now = noon.Add(30 * time.Minute)
			tt.run(t, h, m)
			h.pods.Remove(app("web").Pod)
			h.pods.AddNodes(notReady("n1"))
			h.policy.Nodes.Unknown = policy.Release
			h.now = noon.Add(time.Hour)
			rep := h.run(t)
			equal(t, "verdict by the node", reported(t, rep, "2"), unreachable)
			equal(t, "outcome by the time", outcomes(rep)["3"], report.Released)
			equal(t, "released", rep.Summary.Released, 1)
		})
	}
}

// A dry run that remembers writes the ledger and nothing else. Its report says what is
// due, and the next run that releases knows the times and the nodes.
func TestDryRunThatRemembers(t *testing.T) {
	h, m := waitingHarness(t)
	before := contentsOf(t, m)
	plain := h.policy
	h.policy.DryRun = new(true)
	h.run(t)
	equal(t, "writes of a dry run that does not remember", h.ledgers.saves, 0)

	h.change = func(o *reaper.Options) { o.Remember = true }
	equal(t, "suspected", h.run(t).Summary.Suspected, 2)
	h.now = noon.Add(15 * time.Minute)
	equal(t, "planned", h.run(t).Summary.Planned, 2)
	equal(t, "store", contentsOf(t, m), before)
	equal(t, "journal", len(h.journal.Read().Records), 0)

	h.policy = plain
	equal(t, "released by the next run", h.run(t).Summary.Released, 2)
}

// Promise 2. A dry run does not remember times from a wrong clock, nor over a ledger that it
// could not read.
func TestDryRunDoesNotRememberWhatIsDoubtful(t *testing.T) {
	for name, change := range map[string]func(*harness, *reaper.Options){
		"the clock is wrong": func(_ *harness, o *reaper.Options) {
			o.ClockSkew = func() (time.Duration, bool) { return time.Hour, true }
		},
		"the ledger cannot be read": func(h *harness, _ *reaper.Options) {
			h.ledgers.onLoad = func() error { return errForbidden }
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := waitingHarness(t)
			h.policy.DryRun = new(true)
			h.change = func(o *reaper.Options) {
				o.Remember = true
				change(h, o)
			}
			_, _ = reaper.Run(t.Context(), h.options())
			if text := h.ledgers.text(t); text != "" {
				equal(t, "ledger", text, `{"seen":{}}`)
			}
		})
	}
}

func TestLedgerThatIsFullWarnsOfWhatIsLeftOut(t *testing.T) {
	for entries, want := range map[int]bool{1: false, 100: true} {
		h := newHarness()
		h.pods.Add(manyPods(7)...)
		form := ledgertest.Ledger{Nodes: make(map[string]string)}
		for i := range entries {
			form.Nodes[ledgertest.Key(fmt.Sprint(i))] = "n1"
		}
		h.ledgers.stored, h.ledgers.capacity = form.Encode(), 300
		warnings := strings.Join(h.run(t).Warnings, "\n")
		equal(t, fmt.Sprintf("%d entries: warned", entries), strings.Contains(warnings, " were left out: "), want)
	}
}
