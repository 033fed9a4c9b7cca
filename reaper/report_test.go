package reaper_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Promise 7.
func TestBriefReportLeavesOutAllocationsInUseWithoutANote(t *testing.T) {
	entry := func(key string, decision judge.Verdict, note string, outcome report.Fate) report.Entry {
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

// Promise 7. Tenants may write any number of objects that cannot be decoded. The report has each,
// and few of them in its warnings, also if two stores have the same.
func TestObjectsThatCannotBeDecodedAreCounted(t *testing.T) {
	var steps []step
	var objects []string
	for i := range 40 {
		err := &ipam.ObjectError{Object: fmt.Sprintf("attachment %d", i), Err: errors.New("no JSON")}
		steps, objects = append(steps, step{err: err}), append(objects, err.Error())
	}
	h := newHarness(scriptedStore{name: "one", steps: steps}, scriptedStore{name: "two", steps: steps})
	h.pods.Add(census.Pod{Ref: other})
	report := h.run(t)
	equal(t, "warnings", report.Warnings, append(slices.Clone(objects[:5]),
		"one: 35 more objects cannot be decoded: -o json lists them", "two: 35 more objects cannot be decoded: -o json lists them"))
	equal(t, "objects of the report", report.Backends[1].Undecoded, objects)
}

// Promise 7. A flood of equal failures is one sentence in the error, and two lines in the
// log. The report names each.
func TestEqualFailuresAreCounted(t *testing.T) {
	const pools = 40
	var steps []step
	for i := range pools {
		pool := fmt.Sprintf("pool-%c", 'a'+i)
		steps = append(steps, step{err: &ipam.PoolError{Pool: pool, Err: fmt.Errorf("pools %q is forbidden: uid %d", pool, 1000+i)}})
	}
	var log bytes.Buffer
	h := newHarness(scriptedStore{name: "store", steps: append(steps, step{err: &ipam.PoolError{Pool: "torn", Err: errors.New("no range")}})})
	h.pods.Add(census.Pod{Ref: other})
	o := h.options()
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	report, err := reaper.Run(t.Context(), o)
	const want = `40 failures, the first: store: pool-a: pools "pool-a" is forbidden: uid 1000; store: torn: no range`
	if err == nil || err.Error() != want {
		t.Errorf("run: %v\nwant %s", err, want)
	}
	if lines := strings.Count(log.String(), "forbidden"); lines != 2 {
		t.Errorf("the log has %d lines about it, want 2:\n%s", lines, log.String())
	}
	if !strings.Contains(log.String(), "count=40") {
		t.Errorf("the log does not count:\n%s", log.String())
	}
	var failures []string
	for _, st := range steps {
		failures = append(failures, st.err.Error())
	}
	equal(t, "failures of the report", report.Backends[0].Failures, append(failures, "torn: no range"))
}

// briefHarness returns a harness with leaked addresses, addresses in use, and objects that
// protect one of both. Every pod with an even number exists.
func briefHarness(t *testing.T) (*harness, *backendtest.Memory) {
	t.Helper()
	m := backendtest.NewMemory("memory")
	m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
	h := newHarness(m.Backend())
	h.protectors = []ipam.Protector{&fakeProtector{objects: []ipam.Protection{protecting("over-a-leak", nil, ip2), protecting("over-a-pod", nil, ip1)}}}
	for i := range 8 {
		name := fmt.Sprintf("gone-%d", i)
		if i%2 == 0 {
			name = fmt.Sprintf("live-%d", i)
		}
		h.addPods(t, m, name)
	}
	return h, m
}

// Promise 7. A brief report leaves allocations in use out of its entries. All of its figures,
// and what the run releases, are those of a whole report.
func TestBriefRunReportsAndReleasesTheSame(t *testing.T) {
	for name, change := range map[string]func(*backendtest.Memory, *reaper.Options){
		"a run":                 func(*backendtest.Memory, *reaper.Options) {},
		"a run of one pod":      func(_ *backendtest.Memory, o *reaper.Options) { o.Selection = onePod("gone-1") },
		"a run of one live pod": func(_ *backendtest.Memory, o *reaper.Options) { o.Selection = onePod("live-2") },
		"a run of one backend":  func(_ *backendtest.Memory, o *reaper.Options) { o.Selection.Backends = []string{"memory"} },
		"a refused run": func(_ *backendtest.Memory, o *reaper.Options) {
			o.Policy.Limits.MaxFraction, o.Policy.Limits.MinEntries = new(0.1), new(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			reports, stores := make(map[bool]report.Report), make(map[bool]string)
			for _, brief := range []bool{false, true} {
				h, m := briefHarness(t)
				h.change = func(o *reaper.Options) {
					change(m, o)
					o.Brief = brief
				}
				reports[brief], _ = reaper.Run(t.Context(), h.options())
				stores[brief] = fmt.Sprint(contentsOf(t, m))
			}
			equal(t, "report", asJSON(t, reports[true].Brief()), asJSON(t, reports[false].Brief()))
			equal(t, "store", stores[true], stores[false])
			for _, e := range reports[true].Entries {
				if e.Verdict == judge.InUse && e.Note == "" {
					t.Errorf("%s is in use, and the brief report has it", e.IP)
				}
			}
		})
	}
}

// Promise 1. What an earlier run began to release is mended when its owner is back, even though a
// brief report leaves out what is in use.
func TestBriefRunMendsWhatIsInUse(t *testing.T) {
	h, _ := interruptedHarness(t)
	h.pods.Add(census.Pod{Ref: app("gone-1").Pod})
	h.change = func(o *reaper.Options) { o.Brief = true }
	equal(t, "outcome", outcomes(h.run(t))["10.0.0.2"], report.Returned)
}

// asJSON returns the JSON form of a report.
func asJSON(t *testing.T, r report.Report) string {
	t.Helper()
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
