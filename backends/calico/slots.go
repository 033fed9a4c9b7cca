package calico

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// slots bound the requests of releases that are under way. The zero value allows
// handlesAtOnce of them. It is safe for concurrent use.
type slots struct {
	mu   sync.Mutex
	free *semaphore.Weighted // nil: of handlesAtOnce
}

// limit sets how many slots there are. No slot may be taken.
func (s *slots) limit(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = semaphore.NewWeighted(int64(most))
}

// all returns the slots.
func (s *slots) all() *semaphore.Weighted {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == nil {
		s.free = semaphore.NewWeighted(handlesAtOnce)
	}
	return s.free
}

// enter takes a slot. It waits for one, and goes before those that try to take one more.
func (s *slots) enter(ctx context.Context) error { return s.all().Acquire(ctx, 1) }

// leave gives a slot back.
func (s *slots) leave() { s.all().Release(1) }

// each calls work for every number below n, and returns an error of one of the calls. The
// caller has a slot. A call has a slot of its own and runs beside the caller if a slot is
// free, and has the caller's slot if not.
func (s *slots) each(n int, work func(i int) error) error {
	var g errgroup.Group
	var failed error
	for i := range n {
		if s.all().TryAcquire(1) {
			g.Go(func() error {
				defer s.leave()
				return work(i)
			})
			continue
		}
		if err := work(i); err != nil {
			failed = err
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return failed
}
