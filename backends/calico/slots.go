package calico

import (
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// slots bound the requests of releases that are under way.
type slots struct{ *semaphore.Weighted }

func newSlots(most int) slots { return slots{semaphore.NewWeighted(int64(most))} }

// each calls work for every number below n, and returns an error of one of the calls. The
// caller has a slot. A call has a slot of its own and runs beside the caller if a slot is
// free and no release waits for it, and has the caller's slot if not.
func (s slots) each(n int, work func(i int) error) error {
	var g errgroup.Group
	var failed error
	for i := range n {
		if s.TryAcquire(1) {
			g.Go(func() error {
				defer s.Release(1)
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
