package reaper_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
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
