package reaper_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 2, 4. With a clock that is far ahead, every grace period is over.
func TestNothingIsReleasedByAClockThatIsWrong(t *testing.T) {
	shorter := func(h *harness) { shortenGrace(h, time.Minute) }
	younger := func(h *harness) { h.policy.MinAge = &policy.Duration{Duration: time.Minute} }
	shortest := func(h *harness) { h.policy.GracePeriod = &policy.Duration{Duration: time.Second} }
	for _, tt := range []struct {
		name      string
		clockSkew time.Duration
		known     bool
		released  int
		policy    func(h *harness)
	}{
		{"right", 0, true, 2, nil},
		{"almost right", -9 * time.Second, true, 2, nil},
		{"ahead", 10 * time.Second, true, 0, nil},
		{"behind", -10 * time.Second, true, 0, nil},
		{"not known", time.Hour, false, 2, nil},
		{"ahead for a rule", 7 * time.Second, true, 0, shorter},
		{"behind for the ages", -7 * time.Second, true, 0, younger},
		{"as right as the answers tell", -5 * time.Second, true, 2, shortest},
		{"behind for any policy", -6 * time.Second, true, 0, shortest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, m := waitingHarness(t)
			if tt.policy != nil {
				tt.policy(h)
			}
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

// Promise 4. Runs on machines whose clocks differ: a released allocation was ownerless for most of
// its grace period by the true time, and it is released if the clocks are right enough.
func TestMostOfTheGracePeriodPassesWhereClocksDiffer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h, _ := waitingHarness(t)
		grace := time.Duration(rapid.Int64Range(int64(50*time.Second), int64(2*time.Minute)).Draw(rt, "grace"))
		h.policy.GracePeriod = &policy.Duration{Duration: grace}
		var skew time.Duration
		h.change = func(o *reaper.Options) {
			o.ClockSkew = func() (time.Duration, bool) { return skew.Truncate(time.Second), true }
		}
		passed := time.Duration(0)
		released := func() int {
			h.now = noon.Add(passed + skew)
			report, _ := reaper.Run(t.Context(), h.options())
			return report.Summary.Released
		}
		for range rapid.IntRange(1, 8).Draw(rt, "runs") {
			skew = time.Duration(rapid.Int64Range(int64(-grace), int64(grace)).Draw(rt, "skew"))
			if released() > 0 {
				if least := grace*4/5 - 3*time.Second; passed < least { // seconds are cut off three times
					rt.Fatalf("released after %v, the grace period is %v", passed, grace)
				}
				return
			}
			passed += time.Duration(rapid.Int64Range(0, int64(grace)).Draw(rt, "later"))
		}
		skew = 0
		for range 3 {
			if released() > 0 {
				return
			}
			passed += grace * 6 / 5
		}
		rt.Fatal("nothing was released in the end")
	})
}

// Promise 4. If the clock jumps while a run sleeps, the run still sleeps for at least
// the grace period before it releases.
func TestClockThatJumpsWhileTheRunWaitsReleasesNothingEarly(t *testing.T) {
	for _, tt := range []struct {
		name   string
		jumps  []time.Duration
		sleeps int
	}{
		{"not at all", nil, 1},
		{"forwards", []time.Duration{24 * time.Hour}, 1},
		{"backwards by some seconds", []time.Duration{-5 * time.Second}, 1},
		{"backwards by more than a CronJob jitters", []time.Duration{-2 * time.Minute}, 2},
		{"backwards by an hour", []time.Duration{-time.Hour}, 2},
		{"backwards, and then far ahead", []time.Duration{-time.Hour, 1000 * time.Hour}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := waitingHarness(t)
			h.now = noon.Add(300 * time.Millisecond)
			sleep := (&fakeSleep{jumps: tt.jumps}).attach(h)
			equal(t, "released", h.run(t).Summary.Released, 2)
			equal(t, "sleeps", len(sleep.slept), tt.sleeps)
			if sleep.total() < 15*time.Minute {
				t.Errorf("it slept for %v, the grace period is 15m", sleep.total())
			}
		})
	}
}

// Promise 2, 8. A clock far in the future leaves a ledger that is from the future, or
// cannot be read, once the clock is right again.
func TestClockThatStoodFarInTheFutureRestartsTheGracePeriod(t *testing.T) {
	for _, year := range []int{2100, 9999, 10_000, 200_000} {
		h, m := waitingHarness(t)
		before := contentsOf(t, m)
		h.now = time.Date(year, time.December, 31, 23, 59, 59, 500, time.UTC)
		h.run(t)
		h.now = noon
		equal(t, "suspected", h.run(t).Summary.Suspected, 2)
		equal(t, "store", contentsOf(t, m), before)
		h.now = noon.Add(15 * time.Minute)
		equal(t, "released", h.run(t).Summary.Released, 2)
	}
}
