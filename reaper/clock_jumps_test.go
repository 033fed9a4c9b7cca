package reaper_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/policy"
)

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
		{"backwards by as much as the ledger rounds", []time.Duration{-1100 * time.Millisecond}, 1},
		{"backwards by some seconds", []time.Duration{-5 * time.Second}, 1},
		{"backwards by more than a CronJob jitters", []time.Duration{-2 * time.Minute}, 2},
		{"backwards by an hour", []time.Duration{-time.Hour}, 2},
		{"backwards twice", []time.Duration{-time.Hour, -2 * time.Hour}, 3},
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

// Promise 4. Runs at random times of a clock that jumps: an earlier run saw every
// released allocation, a grace period ago by this clock.
func TestGracePeriodPassesByTheClockOfTheRuns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h, _ := waitingHarness(t)
		grace := time.Duration(rapid.Int64Range(1, int64(2*time.Hour)).Draw(rt, "grace"))
		h.policy.GracePeriod = &policy.Duration{Duration: grace}
		var seen []time.Time
		for range rapid.IntRange(1, 8).Draw(rt, "runs") {
			h.now = h.now.Add(time.Duration(rapid.Int64Range(int64(-3*time.Hour), int64(3*time.Hour)).Draw(rt, "jump")))
			report := h.run(t)
			if report.Summary.Released > 0 {
				ripe := false
				for _, at := range seen {
					ripe = ripe || !h.now.Before(at.Add(grace-early(grace)))
				}
				if !ripe {
					rt.Fatalf("released at %v after runs at %v", h.now, seen)
				}
				return
			}
			seen = append(seen, h.now)
		}
	})
}
