package calico

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// slots bound the requests of releases that are under way. The zero value allows
// handlesAtOnce of them. It is safe for concurrent use.
type slots struct {
	mu      sync.Mutex
	most    int             // 0: handlesAtOnce
	taken   int             // more than most for a while after most has become less
	waiting []chan struct{} // oldest first
}

// limit sets how many slots there are.
func (s *slots) limit(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = most
	s.give()
}

// give gives free slots to those that wait.
func (s *slots) give() {
	for s.taken < cmp.Or(s.most, handlesAtOnce) && len(s.waiting) > 0 {
		s.taken++
		s.waiting[0] <- struct{}{}
		s.waiting = s.waiting[1:]
	}
}

// enter takes a slot. It waits for one, and goes before those that try to take one more.
func (s *slots) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	turn := make(chan struct{}, 1) // give does not wait
	s.mu.Lock()
	s.waiting = append(s.waiting, turn)
	s.give()
	s.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, turn); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	} else { // its turn came at the same time
		s.taken--
		s.give()
	}
	return ctx.Err()
}

// try takes a slot if one is free and no release waits for it.
func (s *slots) try() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken >= cmp.Or(s.most, handlesAtOnce) || len(s.waiting) > 0 {
		return false
	}
	s.taken++
	return true
}

// leave gives a slot back.
func (s *slots) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.give()
}

// each calls work for every number below n, and returns an error of one of the calls. The
// caller has a slot. A call has a slot of its own and runs beside the caller if a slot is
// free, and has the caller's slot if not.
func (s *slots) each(n int, work func(i int) error) error {
	var g errgroup.Group
	var failed error
	for i := range n {
		if s.try() {
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
