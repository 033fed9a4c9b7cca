package reaper_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// Promise 7. A ledger of an earlier run knows no time of an allocation that leaked since.
// If this run does not store one, the next run begins its grace period again.
func TestTimesOfNewLeaksAreReportedOnlyIfThisRunStoresThem(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  func(h *harness)
		want bool
	}{
		{"a dry run", func(h *harness) { h.policy.DryRun = new(true) }, false},
		{"a dry run that remembers", func(h *harness) {
			h.policy.DryRun = new(true)
			h.change = func(o *reaper.Options) { o.Remember = true }
		}, true},
		{"a run", func(*harness) {}, true},
		{"a run that a limit refuses", func(h *harness) {
			h.policy.Limits.MaxReleases = new(1)
			h.policy.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"due-*"}}, GracePeriod: &policy.Duration{}}}
		}, false},
		{"a run that cannot save the ledger", func(h *harness) {
			h.ledgers.onSave = func() error { return errForbidden }
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := backendtest.NewMemory("memory")
			h := newHarness(m.Backend())
			h.addPods(t, m, "live-1", "gone-1")
			h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
			h.run(t)
			h.now = noon.Add(time.Minute)
			h.addPods(t, m, "gone-2", "due-1", "due-2")
			tt.run(h)
			report, _ := reaper.Run(t.Context(), h.options())
			for key, want := range map[string]bool{"2": true, "3": tt.want} {
				e := entryOf(t, report, key)
				equal(t, "verdict of "+key, e.Verdict, judge.Suspected)
				equal(t, "first seen is known of "+key, e.FirstSeen != nil, want)
				equal(t, "due is known of "+key, e.Due != nil, want)
			}
			equal(t, "memory", report.Run.Memory, true)
		})
	}
}
