package calico

import (
	"cmp"
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
			s := newSlots(most)
			var now, peak, done atomic.Int64
			release := func() {
				if err := s.Acquire(t.Context(), 1); err != nil {
					t.Error(err)
				}
				defer s.Release(1)
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
			if !s.TryAcquire(int64(most)) {
				t.Errorf("with %d slots, not all are free in the end", most)
			}
		})
	}
}

// Promise 4. A release may wait so long for its slot that its warrants expire. Then it writes
// nothing, and its allocations are tried again with fresh warrants.
func TestWarrantsExpireWhileAReleaseWaitsForASlot(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		for name, tt := range map[string]struct {
			leak  func(s *fixture) reaper.Allocation
			fresh time.Duration
		}{
			"an address":      {func(s *fixture) reaper.Allocation { return s.leak(1)[0] }, reaper.FreshnessNeverAdopted},
			"an empty handle": {(*fixture).emptyHandle, reaper.FreshnessNeverAdopted},
		} {
			for wait, want := range map[time.Duration]string{tt.fresh: "gone", tt.fresh + time.Millisecond: "again"} {
				synctest.Test(t, func(t *testing.T) {
					s := newFixture(t, sh)
					r := tt.leak(s)
					ws := s.warrants(r)
					s.backend.Limit(1)
					if err := s.backend.slots.Acquire(t.Context(), 1); err != nil {
						t.Fatal(err)
					}
					time.AfterFunc(wait, func() { s.backend.slots.Release(1) })
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
		s := newSlots(most)
		if err := s.Acquire(t.Context(), 1); err != nil {
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
