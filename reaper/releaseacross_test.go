package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// across is a store whose allocations are released across pools by a function.
type across struct {
	wrapped
	release func(ctx context.Context, ws []reaper.Warrant, concurrency int) []error
}

func (s across) ReleaseAcross(ctx context.Context, ws []reaper.Warrant, concurrency int) []error {
	return s.release(ctx, ws, concurrency)
}

// acrossHarness returns a harness of one store with n pools, each with an allocation of a pod
// that is gone.
func acrossHarness(t *testing.T, n int, release func(ctx context.Context, ws []reaper.Warrant, concurrency int) []error) *harness {
	var pools fixedStore
	for i, a := range allocations(n) {
		pool := poolOf(a)
		pool.Name = fmt.Sprint("pool-", i)
		pools = append(pools, pool)
	}
	h := newHarness(across{wrapped{pools, func(context.Context, string, []reaper.Warrant) []error {
		t.Error("a pool is released alone")
		return nil
	}}, release})
	one := 1.0
	h.policy.Limits.MaxFraction = &one
	h.pods.Add(reaper.Pod{Ref: other})
	return h
}

// sizes notes the sizes of batches. Those that answer says are not decided, by their first
// attempt.
func sizes(into *[]int, answer func(batch int, last reaper.Warrant) error) func(context.Context, []reaper.Warrant, int) []error {
	return func(_ context.Context, ws []reaper.Warrant, _ int) []error {
		*into = append(*into, len(ws))
		errs := make([]error, len(ws))
		errs[len(errs)-1] = answer(len(*into), ws[len(ws)-1])
		return errs
	}
}

// A step that is the same for many pools is made once for hundreds of them. Two of the
// largest batches are under way at the same time, and share the requests.
func TestPoolsAreReleasedTogetherInLargerAndLargerBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []int
		var largest sync.WaitGroup
		largest.Add(2)
		h := acrossHarness(t, 1600, func(_ context.Context, ws []reaper.Warrant, concurrency int) []error {
			mu.Lock()
			got = append(got, len(ws))
			together := len(got) > 2
			mu.Unlock()
			if !together {
				equal(t, "concurrency", concurrency, 4)
			} else {
				equal(t, "concurrency", concurrency, 1)
			}
			if len(ws) == reaper.MaxAcross {
				largest.Done()
				largest.Wait()
			}
			for _, w := range ws {
				if _, err := w.Allocation(); err != nil {
					t.Error(err)
				}
			}
			return make([]error, len(ws))
		})
		equal(t, "released", h.run(t).Summary.Released, 1600)
		equal(t, "batches", got, []int{125, 250, 500, 500, 225})
	})
}

// Promise 4. After a batch that took longer than its warrants are valid, the next one is
// smaller. Only what was not decided is tried again.
func TestBatchThatIsNotDecidedAtOnceMakesTheNextOneSmaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []int
		h := acrossHarness(t, 700, sizes(&got, func(batch int, last reaper.Warrant) error {
			if batch == 2 || batch == 4 {
				time.Sleep(2 * reaper.Freshness)
				_, err := last.Allocation()
				return err
			}
			return nil
		}))
		equal(t, "released", h.run(t).Summary.Released, 700)
		equal(t, "batches", got, []int{125, 250, 1, 125, 1, 62, 124, 14})
	})
}

// Promise 9. Some allocations of every batch are never decided. The others are released,
// nevertheless, and in time.
func TestAllocationsThatAreNeverDecidedHoldUpNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := acrossHarness(t, 2000, func(_ context.Context, ws []reaper.Warrant, _ int) []error {
			time.Sleep(1500 * time.Millisecond)
			errs := make([]error, len(ws))
			for i, w := range ws {
				if a, _ := w.Allocation(); strings.HasSuffix(a.Pool, "0") || strings.HasSuffix(a.Pool, "5") {
					errs[i] = fmt.Errorf("%w: the webhook is broken", reaper.ErrAgain)
				}
			}
			return errs
		})
		h.change = func(o *reaper.Options) { o.Timeout = 10 * time.Minute }
		report, _ := h.partial(t)
		equal(t, "released", report.Summary.Released, 1600)
	})
}

// Promise 4, 8, 9. A store that is so slow that most warrants of a large batch expire comes
// to an end nevertheless.
func TestStoreThatOutlastsMostWarrantsIsReleasedInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		m := backendtest.NewTwoStep("two-step")
		h := newHarness(m.Backend())
		h.addPods(t, m, "live-1")
		for i := range n {
			if _, err := m.Reserve(fmt.Sprint("p", i/100), app(fmt.Sprint("gone-", i))); err != nil {
				t.Fatal(err)
			}
		}
		one := 1.0
		h.policy.Limits.MaxFraction = &one
		m.OnRequest(func(request string) error {
			if kind, _, _ := strings.Cut(request, " "); kind == "bury" || kind == "remove" {
				time.Sleep(50 * time.Millisecond)
			}
			return nil
		})
		h.change = func(o *reaper.Options) { o.Timeout = 3 * n * 50 * time.Millisecond }
		equal(t, "released", h.run(t).Summary.Released, n)
	})
}

// Promise 7, 9. The failure of one pool is that of its own release, and stops no other.
func TestEachPoolOfABatchHasItsOwnFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		h := acrossHarness(t, 4, func(_ context.Context, ws []reaper.Warrant, _ int) []error {
			attempts++
			errs := make([]error, len(ws))
			for i, w := range ws {
				switch a, _ := w.Allocation(); a.Pool {
				case "pool-1":
					errs[i] = errors.New("a webhook refuses it")
				case "pool-2":
					errs[i] = fmt.Errorf("%w: it is busy", reaper.ErrAgain)
				case "pool-3":
					errs[i] = fmt.Errorf("%w: it is slow", reaper.ErrAgain)
				}
			}
			return errs
		})
		report, failures := h.partial(t)
		equal(t, "outcomes", outcomes(report), map[string]reaper.Outcome{
			"0": reaper.Released, "1": reaper.Failed, "2": reaper.Failed, "3": reaper.Failed,
		})
		equal(t, "failures", failures, []string{
			"fixed: pool-1: 1 not released: a webhook refuses it",
			"fixed: pool-2: 1 not released: not decided: it is busy",
			"fixed: pool-3: 1 not released: not decided: it is slow",
		})
		equal(t, "attempts", attempts, 6)
	})
}

// Promise 7, 9. A run that is interrupted begins no other batch.
func TestCancelledRunBeginsNoOtherBatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	batches := 0
	h := acrossHarness(t, 200, func(_ context.Context, ws []reaper.Warrant, _ int) []error {
		batches++
		cancel()
		return make([]error, len(ws))
	})
	report, err := reaper.Run(ctx, h.options())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v, want it cancelled", err)
	}
	kept := 0
	for _, e := range report.Entries {
		if e.Outcome == reaper.Kept {
			kept++
		}
	}
	equal(t, "batches", batches, 1)
	equal(t, "released", report.Summary.Released, 125)
	equal(t, "kept", kept, 75)
}

// prepared is a store that reads for a while before its first batch.
type prepared struct {
	across
	prepare func()
}

func (s prepared) Prepare(context.Context) { s.prepare() }

// What a store reads before its first batch takes no time of a warrant, and is read once.
func TestStoreIsPreparedBeforeTheFirstWarrant(t *testing.T) {
	for _, due := range []int{0, 300} {
		synctest.Test(t, func(t *testing.T) {
			var calls []string
			h := acrossHarness(t, due, func(_ context.Context, ws []reaper.Warrant, _ int) []error {
				calls = append(calls, "release")
				errs := make([]error, len(ws))
				for i, w := range ws {
					_, errs[i] = w.Allocation()
				}
				return errs
			})
			h.backends[0] = prepared{h.backends[0].(across), func() {
				calls = append(calls, "prepare")
				time.Sleep(2 * reaper.Freshness)
			}}
			report := h.run(t)
			equal(t, "released", report.Summary.Released, due)
			want := []string(nil)
			if due > 0 {
				want = []string{"prepare", "release", "release"}
			}
			equal(t, "calls", calls, want)
		})
	}
}
