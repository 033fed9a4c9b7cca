package reaper_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 4. A later sandbox may adopt one of these allocations, and never the other.
func TestWarrantExpires(t *testing.T) {
	for never, fresh := range freshness {
		synctest.Test(t, func(t *testing.T) {
			a := allocations(1)[0]
			a.NeverAdopted = never
			look := newSecondLook(t, &backendtest.Pods{}, a)
			ws, _ := look.confirmer().Confirm(t.Context(), look.orphans)
			time.Sleep(fresh)
			if _, err := ws[0].Allocation(); err != nil {
				t.Errorf("after %v: %v", fresh, err)
			}
			time.Sleep(time.Nanosecond)
			if _, err := ws[0].Allocation(); !errors.Is(err, ipam.ErrAgain) {
				t.Errorf("a nanosecond later: %v, want ErrAgain", err)
			}
		})
	}
}

// freshness is how old a look may be, by whether the allocation is never adopted.
var freshness = map[bool]time.Duration{false: 2 * time.Second, true: 20 * time.Second}

// Promise 4. The age counts from the beginning of the look, because the answer may be
// that old.
func TestWarrantIsAsOldAsTheBeginningOfTheLook(t *testing.T) {
	for _, owner := range []ipam.Owner{{Pod: other}, {Sandbox: "s1"}} {
		synctest.Test(t, func(t *testing.T) {
			a := allocations(1)[0]
			a.Owner = owner
			look := newSecondLook(t, &backendtest.Pods{}, a)
			look.pods.OnCall(func(string) error {
				time.Sleep(ipam.Freshness / 3)
				return nil
			})
			began := time.Now()
			ws, errs := look.confirmer().Confirm(t.Context(), look.orphans)
			if errs[0] != nil {
				t.Fatal(errs[0])
			}
			time.Sleep(time.Until(began.Add(ipam.Freshness)))
			if _, err := ws[0].Allocation(); err != nil {
				t.Errorf("%v: %v, want it valid until %v after the beginning", owner, err, ipam.Freshness)
			}
			time.Sleep(time.Nanosecond)
			if _, err := ws[0].Allocation(); !errors.Is(err, ipam.ErrAgain) {
				t.Errorf("%v: %v, want ErrAgain", owner, err)
			}
		})
	}
}

// Promise 1, 4.
func TestRenewLooksAgain(t *testing.T) {
	for _, sandboxOnly := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a := allocations(1)[0]
			back := showing(a.Owner.Pod, a.IP)
			if sandboxOnly {
				a.Owner = ipam.Owner{Sandbox: "s1"}
			}
			look := newSecondLook(t, &backendtest.Pods{}, a)
			ws, _ := look.confirmer().Confirm(t.Context(), look.orphans)
			time.Sleep(ipam.Freshness + 1)
			fresh, err := renewed(t.Context(), ws[0])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fresh.Allocation(); err != nil {
				t.Errorf("the fresh warrant: %v", err)
			}
			look.pods.OnCall(func(string) error { return errors.New("no answer") })
			again, err := renewed(t.Context(), fresh)
			refused(t, again, err, ipam.ErrAgain)
			look.pods.OnCall(nil)
			look.pods.Add(back)
			again, err = renewed(t.Context(), fresh)
			refused(t, again, err, ipam.ErrReturned)
		})
	}
}

// Promise 4. An overlapping-range reservation can be adopted although its entry in a pool cannot.
func TestSiblingOfAnAllocationThatIsNeverAdoptedExpiresEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		as := allocations(2)
		as[0].Group, as[1].Group = "g", "g"
		as[1].Owner.Pod = as[0].Owner.Pod
		as[0].NeverAdopted = true
		look := newSecondLook(t, &backendtest.Pods{}, as...)
		ws, errs := look.confirmer().Confirm(t.Context(), look.orphans)
		equal(t, "errors", errors.Join(errs...), nil)
		time.Sleep(ipam.Freshness + 1)
		if _, err := ws[0].Allocation(); err != nil {
			t.Errorf("the one that is never adopted: %v", err)
		}
		if _, err := ws[1].Allocation(); !errors.Is(err, ipam.ErrAgain) {
			t.Errorf("its sibling: %v, want ErrAgain", err)
		}
	})
}

// Promise 4. A warrant is as old as the clock that ran further since the look says. The
// monotonic clock stops while a machine sleeps, and the wall clock may be set.
func TestWarrantIsAsOldAsTheClockSaysThatRanFurther(t *testing.T) {
	look := newSecondLook(t, &backendtest.Pods{}, allocations(1)...)
	ws, errs := look.confirmer().Confirm(t.Context(), look.orphans)
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

// looked returns the time of a look that is this old by each of the clocks. Package time has
// no function that changes one of them.
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
