package calico

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Two releases of many handles share the slots: there are never more calls at the same
// time than slots, and all slots are used.
func TestReleasesShareTheSlots(t *testing.T) {
	for _, most := range []int{1, 2, 5, 32} {
		synctest.Test(t, func(t *testing.T) {
			var s slots
			s.limit(most)
			var now, peak, done atomic.Int64
			release := func() {
				if err := s.enter(t.Context()); err != nil {
					t.Error(err)
				}
				defer s.leave()
				_ = s.each(100, func(int) error {
					if n := now.Add(1); n > peak.Load() {
						peak.Store(n)
					}
					time.Sleep(time.Second)
					now.Add(-1)
					done.Add(1)
					return nil
				})
			}
			first := make(chan struct{})
			go func() {
				defer close(first)
				release()
			}()
			release()
			<-first
			if peak.Load() != int64(most) || done.Load() != 200 {
				t.Errorf("with %d slots, %d calls, %d at the same time", most, done.Load(), peak.Load())
			}
			if !s.all().TryAcquire(int64(most)) {
				t.Errorf("with %d slots, some are taken in the end", most)
			}
		})
	}
}

// A call that fails stops none of the others.
func TestSlotsReturnAnErrorOfACall(t *testing.T) {
	for _, most := range []int{1, 3} {
		var s slots
		s.limit(most)
		if err := s.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		var calls atomic.Int64
		err := s.each(10, func(i int) error {
			calls.Add(1)
			if i == 4 {
				return errBroken
			}
			return nil
		})
		if !errors.Is(err, errBroken) || calls.Load() != 10 {
			t.Errorf("with %d slots, %d calls and the error %v", most, calls.Load(), err)
		}
	}
}
