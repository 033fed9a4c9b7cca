package reaper_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// briefHarness returns a harness with leaked addresses, addresses in use, and objects that
// protect some of both. Every pod with an even number exists.
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
	for name, change := range map[string]func(*backendtest.Memory, *reaper.Options){
		"a run":                    func(*backendtest.Memory, *reaper.Options) {},
		"a run of one pod":         func(_ *backendtest.Memory, o *reaper.Options) { o.Selection = onePod("gone-1") },
		"a run of one live pod":    func(_ *backendtest.Memory, o *reaper.Options) { o.Selection = onePod("live-2") },
		"a run of another backend": func(_ *backendtest.Memory, o *reaper.Options) { o.Selection.Backends = []string{reservedIPsName} },
		"a refused run": func(_ *backendtest.Memory, o *reaper.Options) {
			o.Policy.Limits.MaxFraction, o.Policy.Limits.MinEntries = new(0.1), new(1)
		},
		// The object that protects it stays, even if brief has left out what is before it.
		"the address of an object changes hands": func(m *backendtest.Memory, _ *reaper.Options) {
			m.OnRequest(func(request string) error {
				if request == "record" {
					m.Rename(ipam.Allocation{Pool: "a", Key: "2"}, other)
				}
				return nil
			})
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
