package ipam_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// warrantsFor returns warrants for the allocations, of a look that begins now.
func warrantsFor(as []ipam.Allocation) []ipam.Warrant {
	ws := make([]ipam.Warrant, len(as))
	for i := range as {
		ws[i] = ipam.NewWarrant(&as[i], time.Now(), nil)
	}
	return ws
}

// The larger a pool, the more its write costs the API server: many at the same time would leave
// it nothing for other clients. All calls share the room, and each answer is that of its own
// warrant.
func TestPoolsThatAreReleasedAtATimeAreNotLargeTogether(t *testing.T) {
	for _, tt := range []struct {
		takes int64
		want  int32
	}{{0, 5}, {1, 5}, {2, 2}, {3, 1}, {5, 1}} {
		synctest.Test(t, func(t *testing.T) {
			as := allocations(20)
			for i := range as {
				as[i].Pool = fmt.Sprint(i / 2)
			}
			ws := warrantsFor(as)
			ws[3] = ipam.Warrant{}
			room := semaphore.NewWeighted(5)
			var now, most atomic.Int32
			call := func(ws []ipam.Warrant) []error {
				return ipam.EachPool(t.Context(), ws, room, func(string) int64 { return tt.takes }, func(pool string, ws []ipam.Warrant) []error {
					most.Store(max(most.Load(), now.Add(1)))
					time.Sleep(time.Millisecond)
					now.Add(-1)
					errs := make([]error, 0, len(ws))
					for _, w := range ws {
						a, err := w.Allocation()
						if err != nil || a.Pool != pool {
							t.Errorf("pool %s gets a warrant for pool %s: %v", pool, a.Pool, err)
						}
						errs = append(errs, errors.New(a.Key))
					}
					return errs
				})
			}
			var first []error
			done := make(chan struct{})
			go func() {
				defer close(done)
				first = call(ws[:10])
			}()
			errs := call(ws[10:])
			<-done
			for i, err := range slices.Concat(first, errs) {
				if i == 3 && !errors.Is(err, ipam.ErrNoWarrant) || i != 3 && err.Error() != as[i].Key {
					t.Errorf("answer %d is %v", i, err)
				}
			}
			if most.Load() != tt.want {
				t.Errorf("%d pools at the same time, each of which takes %d of 5; want %d", most.Load(), tt.takes, tt.want)
			}
		})
	}
}

// Promise 4, 8. Nothing begins after the end of a run, and a backend that does not answer for all
// is not known to have released any.
func TestEachPoolIsNotBegunUnderACancelledContext(t *testing.T) {
	as := allocations(2)
	ws := warrantsFor(as)
	one := func(string) int64 { return 1 }
	ctx, cancel := context.WithCancel(t.Context())
	short := func(string, []ipam.Warrant) []error {
		cancel()
		return []error{nil}
	}
	room := semaphore.NewWeighted(1)
	if errs := ipam.EachPool(ctx, ws, room, one, short); errs[0] != nil || errs[1] == nil {
		t.Errorf("%v, want an error where there is no answer", errs)
	}
	never := func(string, []ipam.Warrant) []error {
		t.Error("a pool is begun")
		return nil
	}
	for _, err := range ipam.EachPool(ctx, ws, room, one, never) {
		if !errors.Is(err, ipam.ErrAgain) || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that nothing was decided", err)
		}
	}
}
