package ipam

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"
)

// ErrNoAnswer says that a backend broke its contract.
var ErrNoAnswer = errors.New("the backend did not answer for every allocation")

// EachPool is Backend.Release for a store that writes each pool separately. It passes the warrants
// of each pool to release, in the order of the pools' first warrants, and as many pools at a time
// as there is room for. All calls of Release share the room; a pool takes up as much of it as
// takes says, at least 1. EachPool itself answers for a warrant that is not valid, and release
// must check the others again right before the write: the pool may have waited.
func EachPool(ctx context.Context, ws []Warrant, room *semaphore.Weighted, takes func(pool string) int64, release func(pool string, ws []Warrant) []error) []error {
	errs := make([]error, len(ws))
	poolOf := make([]string, len(ws))
	var valid []int
	for i, w := range ws {
		a, err := w.Allocation()
		if poolOf[i], errs[i] = a.Pool, err; err == nil {
			valid = append(valid, i)
		}
	}
	var pools sync.WaitGroup
	for _, indices := range ByPool(valid, func(i int) string { return poolOf[i] }) {
		pool, of := poolOf[indices[0]], make([]Warrant, len(indices))
		for n, i := range indices {
			of[n] = ws[i]
		}
		wide := max(1, takes(pool))
		if err := room.Acquire(ctx, wide); err != nil {
			for _, i := range indices {
				errs[i] = fmt.Errorf("%w: %w", ErrAgain, err)
			}
			continue
		}
		pools.Go(func() {
			defer room.Release(wide)
			answers := release(pool, of)
			for n, i := range indices {
				errs[i] = ErrNoAnswer
				if n < len(answers) {
					errs[i] = answers[n]
				}
			}
		})
	}
	pools.Wait()
	return errs
}

// ByPool groups items by pool. The pools are in the order of their first item, and the items of
// each pool stay in their order.
func ByPool[T any](items []T, poolOf func(T) string) [][]T {
	var pools [][]T
	place := make(map[string]int)
	for _, item := range items {
		pool := poolOf(item)
		at, known := place[pool]
		if !known {
			at = len(pools)
			place[pool] = at
			pools = append(pools, nil)
		}
		pools[at] = append(pools[at], item)
	}
	return pools
}
