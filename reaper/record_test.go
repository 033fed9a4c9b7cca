package reaper_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// records returns the places of the journal's records, as backend/pool/key.
func records(j *backendtest.Journal) []string {
	var all []string
	for _, r := range j.Read().Records {
		all = append(all, r.Backend+"/"+r.Pool+"/"+r.Key)
	}
	return all
}

// Promise 10. The journal has the orphans of all backends before the first release.
func TestJournalIsWrittenBeforeTheFirstRelease(t *testing.T) {
	one, two := backendtest.NewMemory("one"), backendtest.NewTwoStep("two")
	h := newHarness(one.Backend(), two.Backend())
	h.addPods(t, one, "live-1", "gone-1")
	h.addPods(t, two, "live-1", "gone-2")
	var order calls
	one.OnRequest(order.of("one: "))
	two.OnRequest(order.of("two: "))
	h.ledgers.onSave = func() error { return order.of("")("ledger") }
	h.journal.OnWrite(func() error { return order.of("")("journal") })
	h.run(t)
	equal(t, "order", order.inPhases(), []string{
		"one: list", "two: list", "ledger", "one: record", "two: record", "journal",
		"one: release a", "two: bury a/10.0.0.2", "two: remove a/10.0.0.2", "ledger",
	})
	equal(t, "records", records(h.journal), []string{"one/a/2", "two/a/10.0.0.2/10.0.0.2"})
}

// Promise 10. A record has the stored allocation, byte for byte, and its owner.
func TestJournalHasTheAllocationAsItWas(t *testing.T) {
	h, m := memoryHarness(t, "live-1", "gone-1")
	var asked []json.RawMessage
	h.backends[0] = spyRecorder{m.Backend(), func(stored []json.RawMessage) []json.RawMessage {
		asked = slices.Clone(stored)
		return stored
	}}
	h.run(t)
	equal(t, "journal", h.journal.Read(), journal.Journal{
		Run: journal.Run{ID: "run-1", StartedAt: noon, Version: "v1", Cluster: "https://cluster"},
		Records: []ipam.Record{{
			Backend: "memory", Pool: "a", Key: "2", IP: "10.0.0.2",
			Owner:  ipam.EntryOwner{Namespace: "default", Pod: "gone-1", Sandbox: "sandbox-gone-1", Interface: "net1"},
			Stored: asked[0],
		}},
	})
}

// A spyRecorder is a backend whose records a test can see and change.
type spyRecorder struct {
	ipam.Backend
	see func(stored []json.RawMessage) []json.RawMessage
}

func (s spyRecorder) Record(ctx context.Context, as []ipam.Allocation) ([]json.RawMessage, error) {
	stored, err := s.Backend.Record(ctx, as)
	return s.see(stored), err
}

// Promise 7, 10.
func TestNothingIsReleasedWithoutAJournal(t *testing.T) {
	one, two := backendtest.NewMemory("one"), backendtest.NewTwoStep("two")
	h := newHarness(one.Backend(), two.Backend())
	h.addPods(t, one, "live-1", "gone-1")
	h.addPods(t, two, "live-1", "gone-2")
	askedOne, askedTwo := requests(one), requests(two)
	h.journal.OnWrite(func() error { return errForbidden })
	rep, failures := h.partial(t)
	why := "nothing is released without a journal: " + errForbidden.Error()
	equal(t, "failures", failures, []string{why})
	equal(t, "warnings", rep.Warnings, []string{why})
	equal(t, "summary", rep.Summary, report.Counts{Entries: 4, InUse: 2, Planned: 2, Failed: 2})
	equal(t, "error", entryOf(t, rep, "2").Error, "it is not in the journal: "+errForbidden.Error())
	equal(t, "requests", append(*askedOne, *askedTwo...), []string{"list", "record", "list", "record"})
}

// Promise 9, 10.
func TestBackendThatCannotRecordStopsNoOther(t *testing.T) {
	for _, tt := range []struct {
		name   string
		first  func(m *backendtest.Memory) ipam.Backend
		reason string
	}{
		{"it fails", func(m *backendtest.Memory) ipam.Backend {
			m.OnRequest(failing(errConnection, "record"))
			return m.Backend()
		}, "not decided: " + errConnection.Error()},
		{"it answers for too few", func(m *backendtest.Memory) ipam.Backend {
			return spyRecorder{m.Backend(), func(stored []json.RawMessage) []json.RawMessage { return stored[1:] }}
		}, "the backend did not answer for every allocation"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, two := backendtest.NewMemory("one"), backendtest.NewMemory("two")
				h := newHarness(tt.first(one), two.Backend())
				h.addPods(t, one, "live-1", "gone-1")
				h.addPods(t, two, "live-1", "gone-2")
				before := contentsOf(t, one)
				report, failures := h.partial(t)
				equal(t, "failures", failures, []string{"one: record allocations before their release: " + tt.reason})
				equal(t, "statuses", statuses(report), map[string]string{"one": "partial: failed releases: 1", "two": "ok"})
				equal(t, "error", report.Entries[1].Error, "it is not in the journal: "+tt.reason)
				equal(t, "store", contentsOf(t, one), before)
				equal(t, "records", records(h.journal), []string{"two/a/2"})
				equal(t, "allocations of the other", len(contentsOf(t, two)), 1)
			})
		})
	}
}

// Promise 7, 10. An allocation that is no longer what was listed is not recorded, and
// stays.
func TestAllocationThatChangedBeforeItWasRecordedStays(t *testing.T) {
	h, m := memoryHarness(t, "live-1", "gone-1", "gone-2")
	m.OnRequest(func(request string) error {
		if request == "record" {
			m.Rename(ipam.Allocation{Pool: "a", Key: "2"}, other)
		}
		return nil
	})
	rep := h.run(t)
	equal(t, "outcomes", outcomes(rep), map[string]report.Fate{"1": report.Kept, "2": report.Changed, "3": report.Released})
	equal(t, "error", entryOf(t, rep, "2").Error, "the allocation changed hands, or is gone, before it was recorded")
	equal(t, "records", records(h.journal), []string{"memory/a/3"})
	equal(t, "allocations left", len(contentsOf(t, m)), 2)
}

// Promise 1, 7, 10. A group is released as a whole. If one allocation of it is not
// recorded, none is released. That is no failure.
func TestGroupThatIsNotRecordedAsAWholeIsKept(t *testing.T) {
	m := backendtest.NewHandled("handled")
	m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
	h := newHarness(m.Backend())
	h.addPods(t, m, "live-1", "gone-1", "gone-2")
	if _, err := m.Reserve("b", app("gone-1")); err != nil {
		t.Fatal(err)
	}
	m.OnRequest(func(request string) error {
		if request == "record" {
			m.Rename(ipam.Allocation{Pool: "b", Key: "1"}, other)
		}
		return nil
	})
	report := h.run(t)
	var got []string
	for _, e := range report.Entries {
		got = append(got, fmt.Sprintf("%s/%s %s %s", e.Pool, e.Key, e.Outcome, e.Error))
	}
	equal(t, "outcomes", got, []string{
		"a/1 kept ", "a/2 kept kept: a sibling is not in the journal", "a/3 released ",
		"b/1 changed the allocation changed hands, or is gone, before it was recorded",
	})
	equal(t, "records", records(h.journal), []string{"handled/a/3"})
	equal(t, "statuses", statuses(report), map[string]string{"handled": "ok"})
}

// refuses returns a hook for writes that refuses the records of some keys.
func refuses(keys ...string) func(records []ipam.Record) error {
	return func(records []ipam.Record) error {
		unfit := &journal.UnfitError{Records: make(map[int]error)}
		for i, r := range records {
			if slices.Contains(keys, r.Key) {
				unfit.Records[i] = fmt.Errorf("%s is too large for the journal", r)
			}
		}
		if len(unfit.Records) == 0 {
			return nil
		}
		return fmt.Errorf("write: %w", unfit)
	}
}

// A pickyJournals is a journal that may refuse records.
type pickyJournals struct {
	*backendtest.Journal
	check func(records []ipam.Record) error
}

func (p pickyJournals) Write(ctx context.Context, run journal.Run, records []ipam.Record) error {
	if err := p.check(records); err != nil {
		return err
	}
	return p.Journal.Write(ctx, run, records)
}

// Promise 7, 9, 10. A record that the journal cannot store keeps its own allocation, and
// its siblings.
func TestRecordThatDoesNotFitStopsNoOther(t *testing.T) {
	m := backendtest.NewHandled("handled")
	m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
	h := newHarness(m.Backend())
	h.addPods(t, m, "live-1", "gone-1", "gone-2", "gone-3")
	if _, err := m.Reserve("b", app("gone-1")); err != nil {
		t.Fatal(err)
	}
	h.change = func(o *reaper.Options) { o.Journals = pickyJournals{h.journal, refuses("2", "4")} }
	report, failures := h.partial(t)
	var got []string
	for _, e := range report.Entries {
		got = append(got, fmt.Sprintf("%s/%s %s %s", e.Pool, e.Key, e.Outcome, e.Error))
	}
	large := func(key string) string {
		return fmt.Sprintf(`the record of backend "handled", pool "a", key %q is too large for the journal`, key)
	}
	equal(t, "outcomes", got, []string{
		"a/1 kept ", "a/2 failed it is not in the journal: " + large("2"), "a/3 released ", "a/4 failed it is not in the journal: " + large("4"),
		"b/1 kept kept: a sibling is not in the journal",
	})
	equal(t, "failures", failures, []string{"handled: not released: " + large("2"), "handled: not released: " + large("4")})
	equal(t, "records", records(h.journal), []string{"handled/a/3"})
}

// A journal that refuses no record in particular refuses all of them.
func TestUnfitErrorWithoutARecordStopsTheRelease(t *testing.T) {
	h, m := memoryHarness(t, "live-1", "gone-1", "gone-2")
	before := contentsOf(t, m)
	h.journal.OnWrite(func() error { return &journal.UnfitError{Records: map[int]error{7: errForbidden}} })
	report, _ := h.partial(t)
	equal(t, "summary", report.Summary.Failed, 2)
	equal(t, "store", contentsOf(t, m), before)
}

// A pruningJournals is a journal with its own Prune.
type pruningJournals struct {
	*backendtest.Journal
	prune func() error
}

func (p pruningJournals) Prune(context.Context) error { return p.prune() }

// Old journals are removed after the releases. They may stay.
func TestOldJournalsThatStayAreAWarning(t *testing.T) {
	h, m := memoryHarness(t, "live-1", "gone-1", "gone-2")
	left := -1
	h.change = func(o *reaper.Options) {
		o.Journals = pruningJournals{h.journal, func() error {
			left = len(contentsOf(t, m))
			return errors.New("no such right")
		}}
	}
	equal(t, "warnings", h.run(t).Warnings, []string{"old journals were not removed: no such right"})
	equal(t, "allocations left when they were pruned", left, 1)
}
