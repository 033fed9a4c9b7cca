package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Promise 4. Every attempt looks at the owners again, and uses no warrant twice.
func TestEachAttemptHasFreshWarrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts [][]ipam.Warrant
		h := batchHarness(func(_ context.Context, ws []ipam.Warrant) []error {
			attempts = append(attempts, ws)
			for _, w := range ws {
				if _, err := w.Allocation(); err != nil {
					t.Errorf("attempt %d: %v", len(attempts), err)
				}
			}
			time.Sleep(2 * time.Second)
			answers := make([]error, len(ws))
			for i := 1; i < len(ws) && len(attempts) < 4; i++ {
				answers[i] = fmt.Errorf("%w: busy", ipam.ErrAgain)
			}
			return answers
		}, 60)
		began := time.Now()
		h.run(t)
		looks := 0
		for _, call := range h.pods.Calls() {
			if strings.HasPrefix(call, "get pod ") {
				looks++
			}
		}
		if len(attempts) != 4 {
			t.Fatalf("%d attempts, want 4", len(attempts))
		}
		for n, want := range []int{60, 59, 58, 57} {
			equal(t, fmt.Sprintf("warrants in attempt %d", n+1), len(attempts[n]), want)
		}
		for _, ws := range attempts[:3] {
			if _, err := ws[0].Allocation(); !errors.Is(err, ipam.ErrAgain) {
				t.Errorf("a warrant of an earlier attempt: %v, want it expired", err)
			}
		}
		equal(t, "looks", looks, 60+59+58+57)
		if pause := time.Since(began) - 8*time.Second; pause < 500*time.Millisecond || pause > 900*time.Millisecond {
			t.Errorf("pauses of %v in all, want about 700 ms", pause)
		}
	})
}

// A retry waits at least as long as a busy API server asks.
func TestRetryWaitsForAsLongAsTheAPIServerAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		h := batchHarness(func(context.Context, []ipam.Warrant) []error {
			attempts++
			if attempts == 1 {
				return []error{&ipam.RetryAfterError{Err: errors.New("busy"), After: 7 * time.Second}}
			}
			return []error{nil}
		}, 1)
		began := time.Now()
		h.run(t)
		if pause := time.Since(began); attempts != 2 || pause < 7*time.Second || pause > 8*time.Second {
			t.Errorf("%d attempts with %v between them, want 2 with 7s", attempts, pause)
		}
	})
}

// Promise 1. A read by name may find that lists lack pods, so what rests on a list alone goes last.
func TestAllocationsThatNameNoPodAreReleasedLast(t *testing.T) {
	as := allocations(4)
	as[0].Owner, as[2].Owner = ipam.Owner{Sandbox: "one"}, ipam.Owner{Sandbox: "another"}
	var order [][]string
	h := newHarness(wrapped{fixedStore{poolOf(as...)}, func(_ context.Context, ws []ipam.Warrant) []error {
		var keys []string
		for _, w := range ws {
			keys = append(keys, w.For().Key)
		}
		order = append(order, keys)
		return make([]error, len(ws))
	}})
	h.policy.Pods.Unnamed, h.policy.Limits.MaxFraction = policy.Release, new(1.0)
	h.pods.Add(census.Pod{Ref: other})
	h.run(t)
	equal(t, "batches", order, [][]string{{"1", "3"}, {"0", "2"}})
}

// Promise 9. While a busy API server refuses requests, an attempt takes at most twice as many as the last one
// decided on. Releases that fail for other reasons keep the others of the batch from no attempt.
func TestBatchTakesWhatABusyAPIServerAnswers(t *testing.T) {
	busy := &ipam.RetryAfterError{Err: errors.New("busy"), After: time.Second}
	for _, tt := range []struct {
		name     string
		answer   func(attempts []int, i, key int) error // attempts are as many as that, by how many they took
		released int
		attempts []int // nil: any
	}{
		{"it refuses whole batches", func(attempts []int, _, _ int) error {
			if attempts[len(attempts)-1] > 10 {
				return busy
			}
			return nil
		}, 100, nil},
		{"it answers some requests", func(_ []int, i, _ int) error {
			if i >= 10 {
				return busy
			}
			return nil
		}, 100, []int{100, 20, 20, 20, 20, 20, 20, 20, 20, 10}},
		{"half fails for other reasons", func(attempts []int, i, key int) error {
			switch {
			case len(attempts) == 1 && i < 98:
				return busy
			case key < 50:
				return ipam.ErrAgain
			}
			return nil
		}, 50, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			var attempts []int
			h := batchHarness(func(_ context.Context, ws []ipam.Warrant) []error {
				attempts = append(attempts, len(ws))
				answers := make([]error, len(ws))
				for i, w := range ws {
					key, _ := strconv.Atoi(w.For().Key)
					answers[i] = tt.answer(attempts, i, key)
				}
				return answers
			}, 100)
			rep, err := reaper.Run(t.Context(), h.options())
			equal(t, tt.name+": all were released", err == nil, tt.released == 100)
			equal(t, tt.name+": released", rep.Summary.Released, tt.released)
			if tt.attempts != nil {
				equal(t, tt.name+": attempts", attempts, tt.attempts)
			}
		})
	}
}

// Promise 1. The pod comes back between two attempts.
func TestOwnerThatReturnsBetweenAttemptsKeepsItsAllocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, m := memoryHarness(t, "live-1", "gone-1", "gone-2")
		before := contentsOf(t, m)
		m.OnRequest(func(request string) error {
			if request != "release a" {
				return nil
			}
			m.OnRequest(nil)
			h.pods.Add(census.Pod{Ref: app("gone-1").Pod})
			return errConnection
		})
		rep := h.run(t)
		equal(t, "outcomes", outcomes(rep), map[string]report.Fate{"1": report.Kept, "2": report.Returned, "3": report.Released})
		delete(before, "a/3")
		equal(t, "store", contentsOf(t, m), before)
	})
}

// Promise 7.
func TestOutcomes(t *testing.T) {
	for _, tt := range []struct {
		answer error
		want   report.Fate
		counts report.Counts
	}{
		{nil, report.Released, report.Counts{Released: 1}},
		{ipam.ErrReturned, report.Returned, report.Counts{Changed: 1}},
		{ipam.ErrChanged, report.Changed, report.Counts{Changed: 1}},
		{ipam.ErrKept, report.Kept, report.Counts{}},
		{ipam.Deleting([]string{"example.com/hold"}), report.Deleting, report.Counts{Deleting: 1}},
		{ipam.ErrUnfinished, report.Released, report.Counts{Released: 1}},
		{fmt.Errorf("%w: %w", ipam.ErrUnfinished, ipam.ErrAgain), report.Released, report.Counts{Released: 1}},
		{errors.New("never heard of it"), report.Failed, report.Counts{Failed: 1}},
	} {
		t.Run(tt.want.String(), func(t *testing.T) {
			answer := tt.answer
			if answer != nil {
				answer = fmt.Errorf("the store says: %w", answer)
			}
			s := wrapped{fixedStore{poolOf(webAllocation())}, func(context.Context, []ipam.Warrant) []error { return []error{answer} }}
			h := newHarness(s)
			h.pods.Add(census.Pod{Ref: other})
			rep, err := reaper.Run(t.Context(), h.options())
			partial := tt.want == report.Failed || tt.want == report.Deleting || errors.Is(tt.answer, ipam.ErrUnfinished)
			if (err != nil) != partial || partial != (rep.Backends[0].Status == ipam.StatusPartial) {
				t.Errorf("run: %v", err)
			}
			e := rep.Entries[0]
			equal(t, "outcome", e.Outcome, tt.want)
			equal(t, "verdict", e.Verdict, judge.Orphaned)
			if answer != nil {
				equal(t, "error", e.Error, answer.Error())
			}
			tt.counts.Entries, tt.counts.Planned = 1, 1
			equal(t, "summary", rep.Summary, tt.counts)
		})
	}
}

// Promise 7, 9. The report has the releases. What was not begun stays, and is no failure. What was under
// way without an answer is not known to be kept, so it has failed.
func TestCancelledRunKeepsAllocationsThatItHadNotBegun(t *testing.T) {
	stopped := fmt.Errorf("%w: %w", ipam.ErrAgain, context.Canceled)
	for _, tt := range []struct {
		name   string
		answer error
		want   report.Fate
		says   string // the run
	}{
		{"released", nil, report.Released, "interrupted: 0 of 1 address released (1 of 2 allocations)"},
		{"not sent", stopped, report.NotBegun, "interrupted: 0 of 1 address released (0 of 2 allocations)"},
		{"its answer was lost", fmt.Errorf("%w: %w", stopped, ipam.ErrLost), report.Failed,
			"one: a: 1 not released: not decided: interrupted: the answer was lost; interrupted: 0 of 1 address released (0 of 2 allocations)"},
		{"its first write was done", ipam.Begun(stopped), report.Failed,
			"one: a: 1 not released: not decided: interrupted, and its release has begun; interrupted: 0 of 1 address released (0 of 2 allocations)"},
		{"the store is busy", &ipam.RetryAfterError{Err: errors.New("busy")}, report.Failed, "one: a: 1 not released: busy; interrupted: 0 of 1 address released (0 of 2 allocations)"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		one, two := backendtest.NewMemory("one"), backendtest.NewMemory("two")
		h := newHarness(nil, two.Backend())
		h.addPods(t, one, "live-1", "gone-1")
		h.addPods(t, two, "live-1", "gone-2")
		beforeTwo := contentsOf(t, two)
		askedTwo := requests(two)
		store := one.Backend()
		h.backends[0] = wrapped{store, func(ctx context.Context, ws []ipam.Warrant) []error {
			defer cancel()
			if tt.want != report.NotBegun {
				store.Release(ctx, ws)
			}
			return []error{tt.answer}
		}}
		rep, err := reaper.Run(ctx, h.options())
		if err == nil || err.Error() != tt.says {
			t.Errorf("%s: run: %v, want %s", tt.name, err, tt.says)
		}
		var got []string
		for _, e := range rep.Entries {
			got = append(got, e.Backend+"/"+e.Key+" "+e.Outcome.String())
		}
		slices.Sort(got)
		equal(t, "outcomes", got, []string{"one/1 kept", "one/2 " + tt.want.String(), "two/1 kept", "two/2 notBegun"})
		equal(t, "failed, and not begun", rep.Summary.Failed+rep.Summary.NotBegun+rep.Summary.Released, 2)
		equal(t, "the store that was not begun", contentsOf(t, two), beforeTwo)
		equal(t, "its requests", *askedTwo, []string{"list", "record"})
	}
}
