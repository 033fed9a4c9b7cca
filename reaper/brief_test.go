package reaper_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// briefHarness returns a harness with leaked addresses, addresses in use, and objects that
// protect some of both. Every pod of an even number lives.
func briefHarness(t *testing.T) (*harness, *backendtest.Memory) {
	t.Helper()
	m, s := backendtest.NewMemory("memory"), &fakeStore{}
	m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
	h := newHarness(m.Backend(), s)
	for i := range 8 {
		name := fmt.Sprintf("gone-%d", i)
		if i%2 == 0 {
			name = fmt.Sprintf("live-%d", i)
		}
		h.addPods(t, m, name)
	}
	s.add(deletable(protecting("over-a-leak", hours(0), ip2)), deletable(protecting("over-a-pod", hours(0), ip1)))
	return h, m
}

// Promise 7. A brief report leaves allocations in use out of its entries. All of its figures,
// and what the run releases, are those of a whole report.
func TestBriefRunReportsAndReleasesTheSame(t *testing.T) {
	for name, change := range map[string]func(*harness, *reaper.Options){
		"a run":                    func(*harness, *reaper.Options) {},
		"a dry run":                func(_ *harness, o *reaper.Options) { o.Policy.DryRun = new(true) },
		"a run of one pod":         func(_ *harness, o *reaper.Options) { o.Selection = onePod("gone-1") },
		"a run of one live pod":    func(_ *harness, o *reaper.Options) { o.Selection = onePod("live-2") },
		"a run of another backend": func(_ *harness, o *reaper.Options) { o.Selection.Backends = []string{reservedIPsName} },
		"a refused run": func(_ *harness, o *reaper.Options) {
			o.Policy.Limits.MaxFraction, o.Policy.Limits.MinEntries = new(0.1), new(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			reports, stores := make(map[bool]reaper.Report), make(map[bool]string)
			for _, brief := range []bool{false, true} {
				h, m := briefHarness(t)
				h.change = func(o *reaper.Options) {
					change(h, o)
					o.Brief = brief
				}
				reports[brief], _ = reaper.Run(t.Context(), h.options())
				stores[brief] = fmt.Sprint(contentsOf(t, m))
			}
			equal(t, "report", asJSON(t, reports[true].Brief()), asJSON(t, reports[false].Brief()))
			equal(t, "store", stores[true], stores[false])
			for _, e := range reports[true].Entries {
				if e.Verdict == reaper.InUse && e.Note == "" {
					t.Errorf("%s is in use, and the brief report has it", e.IP)
				}
			}
		})
	}
}

// asJSON returns the JSON form of a report.
func asJSON(t *testing.T, r reaper.Report) string {
	t.Helper()
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
