package reaper_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// patient is a world of one living and two dead pods, and a grace period of 15
// minutes.
func patient(t *testing.T) (*world, *backendtest.Memory) {
	t.Helper()
	m := backendtest.NewMemory("memory")
	w := newWorld(m.Backend())
	w.policy.GracePeriod = policy.Default().GracePeriod
	w.fill(t, m, "live-1", "gone-1", "gone-2")
	return w, m
}

// Promise 4.
func TestRunsTogetherWaitOutTheGracePeriod(t *testing.T) {
	w, _ := patient(t)
	for _, step := range []struct {
		after time.Duration
		want  reaper.Counts
		saves int
	}{
		{0, reaper.Counts{Entries: 3, InUse: 1, Suspected: 2}, 1},
		{14 * time.Minute, reaper.Counts{Entries: 3, InUse: 1, Suspected: 2}, 1},
		{15 * time.Minute, reaper.Counts{Entries: 3, InUse: 1, Planned: 2, Released: 2}, 1},
		{16 * time.Minute, reaper.Counts{Entries: 1, InUse: 1}, 2},
		{17 * time.Minute, reaper.Counts{Entries: 1, InUse: 1}, 2},
	} {
		w.now = noon.Add(step.after)
		equal(t, "after "+step.after.String(), w.run(t).Summary, step.want)
		equal(t, "writes of the ledger after "+step.after.String(), w.notes.saves, step.saves)
	}
	equal(t, "ledger", string(w.notes.stored), `{"version":1,"seen":{},"figures":{"pods":1}}`)
}

// Promise 2, 8.
func TestDamagedLedgerCountsAsFirstSeenNow(t *testing.T) {
	w, _ := patient(t)
	w.run(t)
	whole := string(w.notes.stored)
	w.notes.stored = []byte(whole[:len(whole)-5])
	w.now = noon.Add(time.Hour)
	report := w.run(t)
	equal(t, "summary", report.Summary, reaper.Counts{Entries: 3, InUse: 1, Suspected: 2})
	equal(t, "warnings", len(report.Warnings), 1)
	w.now = noon.Add(time.Hour + 15*time.Minute)
	equal(t, "released later", w.run(t).Summary.Released, 2)
}

// Promise 2, 8. A ledger that could not be read may be whole, and is not
// replaced by what is known without it.
func TestLedgerThatCannotBeLoadedIsNotOverwritten(t *testing.T) {
	w, m := patient(t)
	w.run(t)
	stored, before, saves := string(w.notes.stored), contentsOf(t, m), w.notes.saves
	w.notes.onLoad = func() error { return forbidden }
	w.now = noon.Add(time.Hour)
	report, failures := w.partial(t)
	equal(t, "failures", failures, []string{"load the ledger: " + forbidden.Error()})
	equal(t, "summary", report.Summary, reaper.Counts{Entries: 3, InUse: 1, Suspected: 2})
	equal(t, "store", contentsOf(t, m), before)
	equal(t, "ledger", string(w.notes.stored), stored)
	equal(t, "writes of the ledger", w.notes.saves, saves)

	w.notes.onLoad = nil
	equal(t, "released once it can", w.run(t).Summary.Released, 2)
}

// Promise 2. The ledger may know of a node that is cut off.
func TestNothingIsReleasedWithoutTheLedger(t *testing.T) {
	w, m := patient(t)
	w.policy.GracePeriod = &policy.Duration{}
	before := contentsOf(t, m)
	w.notes.onLoad = func() error { return forbidden }
	report, failures := w.partial(t)
	equal(t, "failures", failures, []string{"load the ledger: " + forbidden.Error()})
	equal(t, "summary", report.Summary, reaper.Counts{Entries: 3, InUse: 1, Planned: 2, Failed: 2})
	equal(t, "store", contentsOf(t, m), before)
}

// Promise 4. Without grace nothing is remembered of what goes.
func TestReleaseWithoutGraceIsNotRemembered(t *testing.T) {
	w, _ := patient(t)
	w.policy.GracePeriod = &policy.Duration{}
	w.run(t)
	equal(t, "ledger", string(w.notes.stored), `{"version":1,"seen":{},"figures":{"pods":1}}`)
}

// Promise 9.
func TestLedgerThatCannotBeSavedIsAFailureOfItsOwn(t *testing.T) {
	w, _ := patient(t)
	w.notes.onSave = func() error { return forbidden }
	report, failures := w.partial(t)
	equal(t, "failures", failures, []string{"save the ledger: " + forbidden.Error()})
	equal(t, "summary", report.Summary, reaper.Counts{Entries: 3, InUse: 1, Suspected: 2})
	equal(t, "writes of the ledger", w.notes.saves, 1)
}

// Promise 8. Two runs at once: what the other remembers is not lost.
func TestLedgerThatAnotherRunWroteMeanwhileIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := patient(t)
		earlier := *w
		earlier.notes, earlier.now = &notebook{}, noon.Add(-10*time.Minute)
		w.notes.onSave = func() error {
			w.notes.onSave = nil
			earlier.run(t)
			w.notes.stored = earlier.notes.stored
			return fmt.Errorf("%w: conflict", reaper.ErrAgain)
		}
		w.run(t)
		equal(t, "writes of the ledger", w.notes.saves, 1)
		equal(t, "ledger", string(w.notes.stored), string(earlier.notes.stored))

		w.fill(t, m, "gone-3")
		w.run(t)
		l, err := reaper.DecodeLedger(w.notes.stored)
		equal(t, "error", err, nil)
		equal(t, "remembered", l.Len(), 3)
		w.now = noon.Add(5 * time.Minute)
		equal(t, "released", w.run(t).Summary.Released, 2)
	})
}

// Promise 8. The other run remembers less than this one has seen.
func TestLedgerIsSavedAgainAfterAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := patient(t)
		conflicts := 2
		w.notes.onSave = func() error {
			if conflicts == 0 {
				return nil
			}
			conflicts--
			return fmt.Errorf("%w: conflict", reaper.ErrAgain)
		}
		w.run(t)
		equal(t, "writes of the ledger", w.notes.saves, 3)
		l, err := reaper.DecodeLedger(w.notes.stored)
		equal(t, "error", err, nil)
		equal(t, "remembered", l.Len(), 2)
	})
}

// Promise 2, 8.
func TestLedgerThatCannotBeLoadedAfterAConflictIsNotOverwritten(t *testing.T) {
	w, _ := patient(t)
	w.notes.onSave = func() error {
		w.notes.onLoad = func() error { return forbidden }
		w.notes.stored = []byte(`{"version":1,"seen":{"theirs":1}}`)
		return fmt.Errorf("%w: conflict", reaper.ErrAgain)
	}
	_, failures := w.partial(t)
	equal(t, "failures", failures, []string{"save the ledger: " + forbidden.Error()})
	equal(t, "writes of the ledger", w.notes.saves, 1)
	equal(t, "ledger", string(w.notes.stored), `{"version":1,"seen":{"theirs":1}}`)
}

// Promise 9.
func TestLedgerThatIsNeverFreeIsAFailureOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := patient(t)
		w.notes.onSave = func() error { return fmt.Errorf("%w: conflict", reaper.ErrAgain) }
		_, err := reaper.Run(t.Context(), w.options())
		if partial := (*reaper.PartialError)(nil); !errors.As(err, &partial) {
			t.Errorf("run: %v, want a PartialError", err)
		}
		equal(t, "writes of the ledger", w.notes.saves, 4)
	})
}

// Promise 8. A release that failed needs no second grace period.
func TestFailedReleaseIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := patient(t)
		w.run(t)
		w.now = noon.Add(15 * time.Minute)
		m.OnRequest(func(request string) error {
			if request == "list" {
				return nil
			}
			return errConnection
		})
		report, _ := w.partial(t)
		equal(t, "failed", report.Summary.Failed, 2)
		m.OnRequest(nil)
		w.now = noon.Add(16 * time.Minute)
		equal(t, "released by the next run", w.run(t).Summary.Released, 2)
	})
}
