package reaper_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A lagging cluster is written all the time. Its watches tell each change some time late.
type lagging struct {
	*followed
	began time.Time
	lag   time.Duration
}

// at returns the version that the store had some time ago.
func (l lagging) at(ago time.Duration) uint64 {
	return 10 + uint64(max(0, time.Since(l.began)-ago)/time.Millisecond)
}

func (l lagging) PodsVersion(context.Context) (uint64, error) { return l.at(0), nil }

func (l lagging) WatchPods(ctx context.Context, since uint64, tell func(reaper.PodChange) bool) error {
	for range 30 {
		if !sleep(ctx, 100*time.Millisecond) {
			return ctx.Err()
		}
		if v := l.at(l.lag); v > since && !tell(reaper.PodChange{Version: v}) {
			return nil
		}
	}
	return nil
}

// Promise 4. A look that is too old when it comes is none, and is not waited for without end.
func TestFollowerThatIsAlwaysTooLateIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := newFollowed()
		l := newLookThrough(t, lagging{base, time.Now(), 1600 * time.Millisecond}, base, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for range 2 {
			began := time.Now()
			if _, errs := l.confirmer.Confirm(ctx, l.orphans); errs[0] != nil {
				t.Errorf("%v, want a warrant by a list", errs[0])
			}
			if took := time.Since(began); took > 6*time.Second {
				t.Errorf("the look took %v", took)
			}
			time.Sleep(3 * time.Second)
			l.confirmer.Forget()
		}
	})
}

// An expiring cluster ends its first watch after some time, because it has forgotten the
// changes. The others go on.
type expiring struct {
	*followed
	after   time.Duration
	expired *atomic.Bool
}

func (e expiring) WatchPods(ctx context.Context, since uint64, tell func(reaper.PodChange) bool) error {
	if e.expired.CompareAndSwap(false, true) {
		sleep(ctx, e.after)
		return reaper.ErrVersionExpired
	}
	return e.followed.WatchPods(ctx, since, tell)
}

// Promise 1, 4. While the pods are listed again, a watch of another API server goes on. Its
// index is newer than the list, and as complete: the list does not replace it. If it is
// newer before, the pods are not listed.
func TestListThatAWatchHasOvertakenIsNotNeeded(t *testing.T) {
	for after, lists := range map[time.Duration]int{time.Second: 1, 2 * time.Second: 0} {
		inBubble(t, fmt.Sprint("the first watch expires after ", after), func(t *testing.T) {
			base := newFollowed()
			l := newLookThrough(t, expiring{base, after, new(atomic.Bool)}, base, 1)
			base.writeElse()
			base.fail(func(f *faults) { f.delay = 10 * time.Second })
			go func() {
				time.Sleep(1500 * time.Millisecond)
				base.write(showing(other, l.orphans[0].Allocation().IP))
			}()
			_, _ = l.confirmer.Confirm(t.Context(), l.orphans[:1])
			time.Sleep(2 * time.Second)
			l.confirmer.Forget()
			for range 1200 {
				ws, errs := l.confirmer.Confirm(t.Context(), l.orphans[:1])
				refused(t, ws[0], errs[0], reaper.ErrReturned)
				time.Sleep(10 * time.Millisecond)
			}
			equal(t, "lists", base.listed(), lists)
			base.remove(other)
			l.confirmer.Forget()
			base.fail(func(f *faults) { f.delay = 2 * time.Second })
			if _, errs := l.confirmer.Confirm(t.Context(), l.orphans[:1]); errs[0] != nil {
				t.Errorf("%v, want a warrant", errs[0])
			}
			equal(t, "lists for the warrant", base.listed(), 0)
		})
	}
}
