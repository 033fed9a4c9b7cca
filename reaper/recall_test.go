package reaper_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// Promise 7. A time that the next run does not know is not printed.
func TestTimesAreReportedOnlyIfARunRemembersThem(t *testing.T) {
	for _, tt := range []struct {
		name             string
		before           bool // an earlier run stored a ledger
		dryRun, remember bool
		ledgers          func(*memoryLedgers)
		want             bool
	}{
		{"a dry run that is the first", false, true, false, nil, false},
		{"a dry run after one that remembered", true, true, false, nil, true},
		{"a dry run that cannot read the ledger", true, true, false, func(l *memoryLedgers) { l.onLoad = func() error { return errForbidden } }, false},
		{"a run that cannot save the first ledger", false, false, false, func(l *memoryLedgers) { l.onSave = func() error { return errForbidden } }, false},
		{"a run that cannot save another ledger", true, false, false, func(l *memoryLedgers) { l.onSave = func() error { return errForbidden } }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, m := memoryHarness(t, "live-1", "gone-1")
			h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
			if tt.before {
				h.run(t)
				h.addPods(t, m, "gone-2") // so that there is something to save
			}
			h.policy.DryRun = &tt.dryRun
			h.change = func(o *reaper.Options) { o.Remember, o.Overrides = tt.remember, "--grace-period=1h" }
			if tt.ledgers != nil {
				tt.ledgers(h.ledgers)
			}
			report, _ := reaper.Run(t.Context(), h.options())
			e := entryOf(t, report, "2")
			equal(t, "verdict", e.Verdict, judge.Suspected)
			equal(t, "memory", report.Run.Memory, tt.want)
			equal(t, "first seen is known", e.FirstSeen != nil, tt.want)
			equal(t, "due is known", e.Due != nil, tt.want)
			hint := strings.Contains(strings.Join(report.Run.Caveats, "\n"), "--grace-period cannot know how long")
			equal(t, "hint", hint, !tt.before)
			equal(t, "unsaved", report.Run.Unsaved, strings.Contains(tt.name, "cannot save"))
			equal(t, "not timed yet", strings.Contains(report.BottomLine(), "not timed yet"), !tt.before && tt.dryRun)
		})
	}
}

// Promise 7. A ledger of an earlier run has no time for an allocation that leaked since.
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
			h, m := memoryHarness(t, "live-1", "gone-1")
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

// Promise 7. A run of one pod without a grace period releases that pod's allocations. It
// does not begin the grace periods of all others again.
func TestRunWithoutGraceKeepsTheTimesOfWhatItDoesNotRelease(t *testing.T) {
	for name, dryRun := range map[string]bool{"a run of one pod": false, "a dry run that remembers": true} {
		t.Run(name, func(t *testing.T) {
			h, _ := waitingHarness(t)
			h.run(t)
			h.now = noon.Add(10 * time.Minute)
			h.policy.GracePeriod, h.policy.DryRun = &policy.Duration{}, &dryRun
			h.change = func(o *reaper.Options) { o.Selection, o.Remember = onePod("gone-1"), dryRun }
			h.run(t)

			h.policy.GracePeriod, h.policy.DryRun = policy.Default().GracePeriod, new(true)
			h.change = nil
			e := entryOf(t, h.run(t), "3")
			equal(t, "verdict", e.Verdict, judge.Suspected)
			equal(t, "due", *e.Due, noon.Add(15*time.Minute))
		})
	}
}
