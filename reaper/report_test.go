package reaper_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Promise 7.
func TestBriefReportLeavesOutAllocationsInUseWithoutANote(t *testing.T) {
	entry := func(key string, decision judge.Verdict, note string, outcome report.Outcome) report.Entry {
		return report.Entry{Key: key, Verdict: decision, Note: note, Outcome: outcome}
	}
	r := report.Report{Entries: []report.Entry{
		entry("in use", judge.InUse, "", report.Kept),
		entry("disagreement", judge.InUse, "shown by pod a/b", report.Kept),
		entry("given back", judge.InUse, "", report.Returned),
		entry("not given back", judge.InUse, "", report.Failed),
		entry("held", judge.Held, "", report.Kept),
		entry("suspected", judge.Suspected, "", report.Kept),
		entry("released", judge.Orphaned, "", report.Released),
	}}
	var got []string
	for _, e := range r.Brief().Entries {
		got = append(got, e.Key)
	}
	equal(t, "brief", got, []string{"disagreement", "given back", "not given back", "held", "suspected", "released"})
	equal(t, "entries of the whole report", len(r.Entries), 7)
}

// The JSON form is a contract.
func TestReportInJSON(t *testing.T) {
	m := backendtest.NewMemory("memory")
	h := newHarness(m.Backend(), scriptedStore{"broken", []step{{err: errors.New("no list")}}})
	h.addPods(t, m, "live-1", "gone-1")
	report, _ := h.partial(t)
	got, err := json.MarshalIndent(report, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/report.json")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "report", string(got), strings.TrimSpace(string(want)))
}

// An empty report has empty lists, not null.
func TestEmptyReportInJSON(t *testing.T) {
	got, err := json.Marshal(newHarness().run(t))
	if err != nil {
		t.Fatal(err)
	}
	var lists struct{ Backends, Pools, Entries []any }
	if err := json.Unmarshal(got, &lists); err != nil {
		t.Fatal(err)
	}
	if lists.Backends == nil || lists.Pools == nil || lists.Entries == nil {
		t.Errorf("a list is null: %s", got)
	}
}
