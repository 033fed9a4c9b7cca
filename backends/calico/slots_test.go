package calico

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
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
			if s.taken != 0 {
				t.Errorf("with %d slots, %d are taken in the end", most, s.taken)
			}
		})
	}
}

// When slots become fewer, those that are taken stay so until they are given back.
func TestSlotsBecomeFewerAndMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slots
		s.limit(3)
		for range 3 {
			if err := s.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s.limit(1)
		var entered atomic.Int64
		ended := make(chan error, 2)
		canceled, cancel := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{canceled, t.Context()} {
			go func() {
				err := s.enter(ctx)
				entered.Add(1)
				ended <- err
			}()
			synctest.Wait()
		}
		s.leave()
		s.leave()
		synctest.Wait()
		if entered.Load() != 0 || s.try() {
			t.Error("a slot was given while the one that is left was taken")
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a canceled wait ended with %v", err)
		}
		s.limit(2)
		if err := <-ended; err != nil || s.taken != 2 {
			t.Errorf("with one more slot, the wait ended with %v, and %d are taken", err, s.taken)
		}
	})
}

// Promise 4. A release may wait so long for its slot that its warrants expire. Then it writes
// nothing, and its allocations are tried again with fresh warrants.
func TestWarrantsExpireWhileAReleaseWaitsForASlot(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		for name, leak := range map[string]func(s *fixture) reaper.Allocation{
			"an address":      func(s *fixture) reaper.Allocation { return s.leak(1)[0] },
			"an empty handle": (*fixture).emptyHandle,
		} {
			for wait, want := range map[time.Duration]string{reaper.Freshness: "gone", reaper.Freshness + time.Millisecond: "again"} {
				synctest.Test(t, func(t *testing.T) {
					s := newFixture(t, sh)
					r := leak(s)
					ws := s.warrants(r)
					s.backend.Limit(1)
					if err := s.backend.slots.enter(t.Context()); err != nil {
						t.Fatal(err)
					}
					time.AfterFunc(wait, s.backend.slots.leave)
					s.onRequest(nil)
					if got := outcomes(s.backend.Release(t.Context(), cmp.Or(r.Pool, firstBlock), ws)); got != want {
						t.Errorf("Release of %s after %v = %s, want %s", name, wait, got, want)
					}
					if requests := s.requests(); want == "again" && len(requests) > 0 {
						t.Errorf("with expired warrants, Release of %s makes the requests %v", name, requests)
					}
				})
			}
		}
	})
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
