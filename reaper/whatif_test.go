package reaper_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

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
