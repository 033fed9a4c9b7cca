package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// batchHarness returns a harness with one store whose pools have this many allocations of pods
// that are gone, and which releases with a function.
func batchHarness(release func(ctx context.Context, ws []ipam.Warrant) []error, sizes ...int) *harness {
	total := 0
	for _, n := range sizes {
		total += n
	}
	all, pools := allocations(total), fixedStore{}
	for i, n := range sizes {
		pool := poolOf(all[:n]...)
		pool.Name = fmt.Sprint("pool-", i)
		pools, all = append(pools, pool), all[n:]
	}
	h := newHarness(wrapped{pools, release})
	h.policy.Limits.MaxFraction = new(1.0)
	h.pods.Add(census.Pod{Ref: other})
	return h
}

// A batch has whole pools, the largest first. Two are under way at the same time, but never two
// of one pool: a release in a pool depends on what the store said about the last.
func TestBatchesHaveWholePoolsTheLargestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no machine is too slow for the warrants
		var mu sync.Mutex
		var batches []string
		busy, most := make(map[string]bool), 0
		h := batchHarness(func(_ context.Context, ws []ipam.Warrant) []error {
			count := make(map[string]int)
			for _, w := range ws {
				a, err := w.Allocation()
				if err != nil {
					t.Error(err)
				}
				count[a.Pool]++
			}
			mu.Lock()
			batches = append(batches, fmt.Sprint(count))
			for pool := range count {
				if busy[pool] {
					t.Errorf("%s is in two calls at the same time", pool)
				}
				busy[pool] = true
			}
			most = max(most, len(busy))
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			for pool := range count {
				delete(busy, pool)
			}
			mu.Unlock()
			return make([]error, len(ws))
		}, 100, ipam.MaxBatch+200, 300, 200, 1)
		equal(t, "released", h.run(t).Summary.Released, ipam.MaxBatch+801)
		slices.Sort(batches)
		equal(t, "batches", batches, []string{"map[pool-0:100 pool-4:1]", "map[pool-1:200]", "map[pool-1:500]", "map[pool-2:300 pool-3:200]"})
		equal(t, "pools at the same time", most, 3)
	})
}

// Promise 4, 8. While a batch waits for another one, its warrants may expire. It tries again
// alone, so that a slow store gets done.
func TestBatchThatWasTooLateGoesOnAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := make(chan struct{}, 1) // one call at a time
		calls := 0
		h := batchHarness(func(_ context.Context, ws []ipam.Warrant) []error {
			store <- struct{}{}
			defer func() { <-store }()
			calls++
			errs := make([]error, len(ws))
			for i, w := range ws {
				_, errs[i] = w.Allocation()
			}
			if errs[0] == nil {
				time.Sleep(2 * ipam.Freshness)
			}
			return errs
		}, slices.Repeat([]int{ipam.MaxBatch}, 6)...)
		equal(t, "released", h.run(t).Summary.Released, 6*ipam.MaxBatch)
		if calls > 12 {
			t.Errorf("%d calls, want at most two for each batch", calls)
		}
	})
}

// Promise 9. Some allocations of every batch are never decided. The others are released,
// nevertheless, and in time.
func TestAllocationsThatAreNeverDecidedHoldUpNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := batchHarness(func(_ context.Context, ws []ipam.Warrant) []error {
			time.Sleep(1500 * time.Millisecond)
			errs := make([]error, len(ws))
			for i, w := range ws {
				if a, _ := w.Allocation(); strings.HasSuffix(a.Pool, "0") || strings.HasSuffix(a.Pool, "5") {
					errs[i] = fmt.Errorf("%w: the webhook is broken", ipam.ErrAgain)
				}
			}
			return errs
		}, slices.Repeat([]int{1}, 2000)...)
		h.change = func(o *reaper.Options) { o.Timeout = 10 * time.Minute }
		report, _ := h.partial(t)
		equal(t, "released", report.Summary.Released, 1600)
	})
}

// Promise 4, 8, 9. A store that is so slow that most warrants of a large batch expire gets
// done nevertheless.
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
		h.policy.Limits.MaxFraction = new(1.0)
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

// Promise 7, 9. The failure of one pool is that of its own release, and stops no other. What a
// backend that breaks its contract did not confirm is no release.
func TestEachPoolOfABatchHasItsOwnFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := batchHarness(func(_ context.Context, ws []ipam.Warrant) []error {
			errs := make([]error, len(ws))
			for i, w := range ws {
				switch a, _ := w.Allocation(); a.Pool {
				case "pool-1":
					errs[i] = errors.New("a webhook refuses it")
				case "pool-2":
					errs[i] = fmt.Errorf("%w: it is busy", ipam.ErrAgain)
				case "pool-3":
					errs[i] = fmt.Errorf("%w: it is slow", ipam.ErrAgain)
				}
			}
			return errs[:min(4, len(errs))]
		}, 1, 1, 1, 1, 1)
		rep, failures := h.partial(t)
		equal(t, "outcomes", outcomes(rep), map[string]report.Fate{
			"0": report.Released, "1": report.Failed, "2": report.Failed, "3": report.Failed, "4": report.Failed,
		})
		equal(t, "failures", failures, []string{
			"fixed: pool-1: 1 not released: a webhook refuses it",
			"fixed: pool-4: 1 not released: the backend did not answer for every allocation",
			"fixed: pool-2: 1 not released: not decided: it is busy",
			"fixed: pool-3: 1 not released: not decided: it is slow",
		})
	})
}
