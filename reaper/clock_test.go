package reaper_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 4. However the clock jumps while a run sleeps, it sleeps for no less than
// the grace period before it releases.
func TestClockThatJumpsWhileTheRunWaitsReleasesNothingEarly(t *testing.T) {
	for _, tt := range []struct {
		name  string
		jumps []time.Duration
		naps  int
	}{
		{"not at all", nil, 1},
		{"forwards", []time.Duration{24 * time.Hour}, 1},
		{"backwards by as much as the ledger rounds", []time.Duration{-1100 * time.Millisecond}, 2},
		{"backwards by some seconds", []time.Duration{-5 * time.Second}, 2},
		{"backwards by an hour", []time.Duration{-time.Hour}, 2},
		{"backwards twice", []time.Duration{-time.Hour, -2 * time.Hour}, 3},
		{"backwards, and then far ahead", []time.Duration{-time.Hour, 1000 * time.Hour}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, _ := patient(t)
			w.now = noon.Add(300 * time.Millisecond)
			b := (&bed{jumps: tt.jumps}).in(w)
			equal(t, "released", w.run(t).Summary.Released, 2)
			equal(t, "naps", len(b.slept), tt.naps)
			if b.total() < 15*time.Minute {
				t.Errorf("it slept for %v, the grace period is 15m", b.total())
			}
		})
	}
}

// Promise 2, 4. A clock that runs backwards, and a ledger from the future, restart
// the grace period; nothing is released before the clock has moved on by it.
func TestClockThatGoesBackwardsRestartsTheGracePeriod(t *testing.T) {
	for _, back := range []time.Duration{time.Second, time.Hour, 50 * 365 * 24 * time.Hour} {
		w, m := patient(t)
		before := contentsOf(t, m)
		w.run(t)
		w.now = noon.Add(-back)
		equal(t, "suspected", w.run(t).Summary.Suspected, 2)
		w.now = w.now.Add(15*time.Minute - time.Second)
		equal(t, "suspected until it is over", w.run(t).Summary.Suspected, 2)
		equal(t, "store", contentsOf(t, m), before)
		w.now = w.now.Add(time.Second)
		equal(t, "released", w.run(t).Summary.Released, 2)
	}
}

// Promise 2. Of times before 1970 the ledger knows nothing.
func TestClockFromBeforeAllComputersKeeps(t *testing.T) {
	w, m := patient(t)
	before := contentsOf(t, m)
	w.now = noon.Add(-200 * 365 * 24 * time.Hour)
	for range 3 {
		equal(t, "suspected", w.run(t).Summary.Suspected, 2)
		w.now = w.now.Add(time.Hour)
	}
	equal(t, "store", contentsOf(t, m), before)
}

// Promise 2, 8. A clock that stood far in the future leaves a ledger that, once it
// stands right again, is from the future, or not readable at all.
func TestClockThatStoodFarInTheFutureRestartsTheGracePeriod(t *testing.T) {
	for _, year := range []int{2100, 9999, 10_000, 200_000} {
		w, m := patient(t)
		before := contentsOf(t, m)
		w.now = time.Date(year, time.December, 31, 23, 59, 59, 500, time.UTC)
		w.run(t)
		w.now = noon
		equal(t, "suspected", w.run(t).Summary.Suspected, 2)
		equal(t, "store", contentsOf(t, m), before)
		w.now = noon.Add(15 * time.Minute)
		equal(t, "released", w.run(t).Summary.Released, 2)
	}
}

// Promise 4. Runs at any times of a clock that jumps: what is released was seen by
// an earlier run, by this clock a grace period ago.
func TestWhateverTheClockSaysTheGracePeriodWasSeen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w, _ := patient(t)
		grace := time.Duration(rapid.Int64Range(1, int64(2*time.Hour)).Draw(rt, "grace"))
		w.policy.GracePeriod = &policy.Duration{Duration: grace}
		var seen []time.Time
		for range rapid.IntRange(1, 8).Draw(rt, "runs") {
			w.now = w.now.Add(time.Duration(rapid.Int64Range(int64(-3*time.Hour), int64(3*time.Hour)).Draw(rt, "jump")))
			report := w.run(t)
			if report.Summary.Released > 0 {
				ripe := false
				for _, at := range seen {
					ripe = ripe || !w.now.Before(at.Add(grace))
				}
				if !ripe {
					rt.Fatalf("released at %v after runs at %v", w.now, seen)
				}
				return
			}
			seen = append(seen, w.now)
		}
	})
}

// Promise 2. The grace period itself may be as long as it likes.
func TestLongestTimesKeep(t *testing.T) {
	w, _ := patient(t)
	longest := time.Duration(1<<63 - 1)
	w.policy.GracePeriod = &policy.Duration{Duration: longest}
	w.run(t)
	w.now = noon.Add(250 * 365 * 24 * time.Hour)
	equal(t, "suspected", w.run(t).Summary.Suspected, 2)

	kept, _, _ := retaining(t, keeping("a", &longest, ip2))
	kept.run(t)
	kept.now = noon.Add(250 * 365 * 24 * time.Hour)
	equal(t, "verdict", told(t, kept.run(t), "2").Reason, reaper.Protected)
}
