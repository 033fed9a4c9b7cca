package reaper_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 2, 4. A clock that is wrong says that every grace period is over.
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
			w, m := patient(t)
			w.run(t)
			before := contentsOf(t, m)
			ledger := string(w.notes.stored)
			w.now = noon.Add(time.Hour + tt.clockSkew)
			w.change = func(o *reaper.Options) {
				o.ClockSkew = func() (time.Duration, bool) { return tt.clockSkew, tt.known }
			}
			if tt.released > 0 {
				equal(t, "released", w.run(t).Summary.Released, tt.released)
				return
			}
			report, failures := w.partial(t)
			if len(failures) != 1 || !strings.Contains(failures[0], "the clock here is ") {
				t.Errorf("failures: %q, want that the clock is wrong", failures)
			}
			equal(t, "released", report.Summary.Released, 0)
			equal(t, "store", contentsOf(t, m), before)
			equal(t, "ledger", string(w.notes.stored), ledger)
		})
	}
}

func TestDryRunWarnsOfAClockThatIsWrong(t *testing.T) {
	w, _ := patient(t)
	w.policy.DryRun = policy.Default().DryRun
	w.change = func(o *reaper.Options) {
		o.ClockSkew = func() (time.Duration, bool) { return time.Hour, true }
	}
	equal(t, "warnings", len(w.run(t).Warnings), 1)
}
