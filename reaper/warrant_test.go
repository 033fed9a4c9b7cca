package reaper_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 4.
func TestWarrantExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t, &backendtest.Pods{}, entries(1)...)
		ws, _ := h.confirmer(1).Confirm(t.Context(), h.orphans)
		time.Sleep(reaper.Freshness)
		if _, err := ws[0].Allocation(); err != nil {
			t.Errorf("after %v: %v", reaper.Freshness, err)
		}
		time.Sleep(time.Nanosecond)
		if _, err := ws[0].Allocation(); !errors.Is(err, reaper.ErrAgain) {
			t.Errorf("a nanosecond later: %v, want ErrAgain", err)
		}
	})
}

// Promise 4. What counts is when the look began: the answer may be as old.
func TestWarrantIsAsOldAsTheBeginningOfTheLook(t *testing.T) {
	for _, due := range []int{1, 1000} {
		synctest.Test(t, func(t *testing.T) {
			h := newHearing(t, &backendtest.Pods{}, entries(1)...)
			h.pods.OnCall(func(string) error {
				time.Sleep(reaper.Freshness + 1)
				return nil
			})
			ws, errs := h.confirmer(due).Confirm(t.Context(), h.orphans)
			if errs[0] != nil {
				t.Fatal(errs[0])
			}
			if _, err := ws[0].Allocation(); !errors.Is(err, reaper.ErrAgain) {
				t.Errorf("%d due: %v, want ErrAgain", due, err)
			}
		})
	}
}

// Promise 1, 4.
func TestRenewLooksAgain(t *testing.T) {
	for _, due := range []int{1, 1000} {
		for _, sandboxOnly := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				r := entries(1)[0]
				back := showing(r.Owner.Pod, r.IP)
				if sandboxOnly {
					r.Owner = reaper.Owner{Sandbox: "s1"}
				}
				h := newHearing(t, &backendtest.Pods{}, r)
				ws, _ := h.confirmer(due).Confirm(t.Context(), h.orphans)
				time.Sleep(reaper.Freshness + 1)
				fresh, err := ws[0].Renew(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := fresh.Allocation(); err != nil {
					t.Errorf("the fresh warrant: %v", err)
				}
				h.pods.OnCall(func(string) error { return errors.New("no answer") })
				again, err := fresh.Renew(t.Context())
				refused(t, again, err, reaper.ErrAgain)
				h.pods.OnCall(nil)
				h.pods.Add(back)
				again, err = fresh.Renew(t.Context())
				refused(t, again, err, reaper.ErrReturned)
			})
		}
	}
}
