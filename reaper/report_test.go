package reaper_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
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
	h := newHarness(m.Backend(), scriptedStore{name: "broken", steps: []step{{err: errors.New("no list")}}})
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

// Promise 9. The figures of the pools say the same as the bottom line.
func TestAddressThatChangedHandsIsNotLeakedInItsPool(t *testing.T) {
	for _, tt := range []struct {
		answer              error
		leaked, live, other int
	}{
		{ipam.ErrKept, 1, 0, 0},
		{ipam.ErrReturned, 0, 1, 0},
		{ipam.ErrChanged, 0, 0, 1},
	} {
		pool := poolOf(webAllocation())
		pool.Range = netip.MustParsePrefix("10.0.0.0/24")
		h := newHarness(wrapped{fixedStore{pool}, answering(tt.answer)})
		h.pods.Add(census.Pod{Ref: other})
		report, _ := reaper.Run(t.Context(), h.options())
		u := report.Pools[0].Usage
		equal(t, "leaked after "+tt.answer.Error(), u.Leaked, tt.leaked)
		equal(t, "leaked by the bottom line", report.Leaked.Total, tt.leaked)
		equal(t, "live", u.Live, tt.live)
		equal(t, "other", u.Other, tt.other)
	}
}
