package ipam_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

// Promise 4. A later sandbox may adopt one of these allocations, and never the other.
func TestWarrantExpires(t *testing.T) {
	for adoption, fresh := range map[ipam.Adoption]time.Duration{ipam.Adoptable: 2 * time.Second, ipam.NeverAdopted: 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			a := allocations(1)
			a[0].Adoption = adoption
			w := warrantsFor(a)[0]
			time.Sleep(fresh)
			if _, err := w.Allocation(); err != nil {
				t.Errorf("after %v: %v", fresh, err)
			}
			time.Sleep(time.Nanosecond)
			if _, err := w.Allocation(); !errors.Is(err, ipam.ErrAgain) {
				t.Errorf("a nanosecond later: %v, want ErrAgain", err)
			}
		})
	}
}

// Promise 4. A warrant is as old as the clock that ran further since the look says. The
// monotonic clock stops while a machine sleeps, and the wall clock may be set.
func TestWarrantIsAsOldAsTheClockSaysThatRanFurther(t *testing.T) {
	a := webAllocation()
	const later = time.Minute // no test takes that long between two lines
	rapid.Check(t, func(t *rapid.T) {
		ages := rapid.OneOf(rapid.Just(-later), rapid.Just(later), rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(int64(-100*24*time.Hour), int64(100*24*time.Hour)).Draw(t, "age"))
		}))
		monotonic, wall := ages.Draw(t, "by the monotonic clock"), ages.Draw(t, "by the wall clock")
		began := reapertest.Looked(t, time.Now(), monotonic, wall)
		_, err := ipam.NewWarrant(&a, began, nil).Allocation()
		switch old := max(monotonic, wall); {
		case old > ipam.Freshness && !errors.Is(err, ipam.ErrAgain):
			t.Errorf("%v, want ErrAgain", err)
		case old <= -later && err != nil:
			t.Errorf("%v, want that it is valid", err)
		}
	})
}
