package reaper

import (
	"context"
	"sync"
)

const (
	firstAcross = MaxAcross / 4 // allocations of the first batch across pools
	looksAcross = 2             // requests that two batches leave to the looks
)

// releaseAcross releases orphans of any pools of one backend, batch by batch. As soon as
// batches are as large as they may be, two of them are under way: the writes of one fill the
// time in which the other waits for its look.
func (r *run) releaseAcross(ctx context.Context, b BatchReleaser, plan Plan, confirmer *Confirmer, due []int, settled *meter) {
	if p, ok := b.(Preparer); ok && len(due) > 0 {
		p.Prepare(ctx)
	}
	batches := acrossBatches{due: due, size: firstAcross}
	release := func(concurrency int) bool {
		batch := batches.next()
		if len(batch) == 0 {
			return false
		}
		send := func(ctx context.Context, ws []Warrant) []error { return b.ReleaseAcross(ctx, ws, concurrency) }
		batches.resize(r.releaseBatch(ctx, send, plan, confirmer, batch))
		settled.add(len(batch))
		return true
	}
	half := (r.Concurrency - looksAcross) / 2
	for release(max(1, r.Concurrency)) {
		if half > 0 && batches.largest() {
			break
		}
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for release(half) {
				continue
			}
		})
	}
	both.Wait()
}

// acrossBatches are the batches of a release across pools. It is safe for concurrent use.
type acrossBatches struct {
	mu   sync.Mutex
	due  []int // the rest
	size int   // of the next batch
}

// next returns the next batch; none after the last one.
func (q *acrossBatches) next() []int {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch := q.due[:min(q.size, len(q.due))]
	q.due = q.due[len(batch):]
	return batch
}

// resize makes the next batch larger after one that had time, and smaller after one whose
// writes took longer than warrants are valid. What the store refuses to decide makes no batch
// smaller: each batch waits for its own.
func (q *acrossBatches) resize(inTime bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if inTime {
		q.size = min(2*q.size, MaxAcross)
	} else {
		q.size = max(q.size/2, 1)
	}
}

// largest reports whether the next batch may be as large as any.
func (q *acrossBatches) largest() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size == MaxAcross
}
