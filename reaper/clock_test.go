package reaper_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 2, 4. By a clock that is far ahead, every grace period is over.
func TestNothingIsReleasedByAClockThatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		name      string
		clockSkew time.Duration
		known     bool
		released  int
	}{
		{"right", 0, true, 2},
		{"almost right", -time.Minute, true, 2},
		{"ahead", 61 * time.Second, true, 0},
		{"far in the future", 40 * 365 * 24 * time.Hour, true, 0},
		{"behind", -61 * time.Second, true, 0},
		{"not known", time.Hour, false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, m := waitingHarness(t)
			h.run(t)
			before := contentsOf(t, m)
			ledger := h.ledgers.text(t)
			h.now = noon.Add(time.Hour + tt.clockSkew)
			h.change = func(o *reaper.Options) {
				o.ClockSkew = func() (time.Duration, bool) { return tt.clockSkew, tt.known }
			}
			if tt.released > 0 {
				equal(t, "released", h.run(t).Summary.Released, tt.released)
				return
			}
			report, failures := h.partial(t)
			if len(failures) != 1 || !strings.Contains(failures[0], "the clock here is ") {
				t.Errorf("failures: %q, want that the clock is wrong", failures)
			}
			equal(t, "released", report.Summary.Released, 0)
			equal(t, "store", contentsOf(t, m), before)
			equal(t, "ledger", h.ledgers.text(t), ledger)
		})
	}
}

func TestDryRunWarnsOfAClockThatIsWrong(t *testing.T) {
	h, _ := waitingHarness(t)
	h.policy.DryRun = policy.Default().DryRun
	h.change = func(o *reaper.Options) {
		o.ClockSkew = func() (time.Duration, bool) { return time.Hour, true }
	}
	warnings := strings.Join(h.run(t).Warnings, "\n")
	equal(t, "warning of the clock", strings.Count(warnings, "the clock here is "), 1)
}
