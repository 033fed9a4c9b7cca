package reaper_test

import (
	"errors"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 4. A warrant is as old as the clock says that ran further since the look. The
// monotonic clock stops while a machine sleeps, and the wall clock may be set.
func TestWarrantIsAsOldAsTheClockSaysThatRanFurther(t *testing.T) {
	look := newSecondLook(t, &backendtest.Pods{}, allocations(1)...)
	ws, errs := look.confirmer(1).Confirm(t.Context(), look.orphans)
	if errs[0] != nil {
		t.Fatal(errs[0])
	}
	const later = time.Minute // no test takes that long between two lines
	rapid.Check(t, func(t *rapid.T) {
		ages := rapid.OneOf(rapid.Just(-later), rapid.Just(later), rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(int64(-100*24*time.Hour), int64(100*24*time.Hour)).Draw(t, "age"))
		}))
		monotonic, wall := ages.Draw(t, "by the monotonic clock"), ages.Draw(t, "by the wall clock")
		began := looked(t, time.Now(), monotonic, wall)
		_, err := lookedAt(ws[0], began).Allocation()
		switch old := max(monotonic, wall); {
		case old > ipam.Freshness && !errors.Is(err, ipam.ErrAgain):
			t.Errorf("%v, want ErrAgain", err)
		case old <= -later && err != nil:
			t.Errorf("%v, want that it is valid", err)
		}
	})
}

// looked returns the time of a look that is so old by each of the clocks. Package time has no
// function that changes one of them.
func looked(t rapid.TB, now time.Time, monotonic, wall time.Duration) time.Time {
	began := now.Add(-wall)
	(*struct { // as in time.Time
		wall uint64
		ext  int64 // monotonic nanoseconds
		loc  *time.Location
	})(unsafe.Pointer(&began)).ext += int64(wall - monotonic)
	if got := now.Sub(began); got != monotonic {
		t.Fatalf("the look is %v old by the monotonic clock, want %v: time.Time is built in another way", got, monotonic)
	}
	if got := now.Round(0).Sub(began.Round(0)); got != wall {
		t.Fatalf("the look is %v old by the wall clock, want %v", got, wall)
	}
	return began
}
