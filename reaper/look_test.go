package reaper_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// crowd adds pods that own nothing.
func crowd(pods *backendtest.Pods, n int) {
	for i := range n {
		pods.Add(reaper.Pod{Ref: reaper.PodRef{Namespace: "crowd", Name: fmt.Sprint(i)}})
	}
}

// The second look costs the API server as little as possible.
func TestHowOwnersAreLookedAt(t *testing.T) {
	list, get := []string{"list pods"}, []string{"get pod default/app-0", "get pod default/app-1"}
	for _, tt := range []struct {
		name       string
		crowd, due int
		want       []string
	}{
		{"few are due", 0, 2, get},
		{"as many as are few", 0, 50, get},
		{"many are due", 0, 51, list},
		{"many are due in a cluster that is worth it", 51 * 20, 51, list},
		{"many are due in a far larger cluster", 51*20 + 1, 51, get},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pods := &backendtest.Pods{}
			crowd(pods, tt.crowd)
			h := newHearing(t, pods, entries(2)...)
			_, errs := h.confirmer(tt.due).Confirm(t.Context(), h.orphans)
			equal(t, "errors", errors.Join(errs...), nil)
			calls := h.pods.Calls()
			slices.Sort(calls)
			equal(t, "calls", calls, tt.want)
		})
	}
}

func TestOwnerOfSeveralEntriesIsLookedAtOnce(t *testing.T) {
	rs := entries(2)
	rs[1].Owner.Pod = rs[0].Owner.Pod
	h := newHearing(t, &backendtest.Pods{}, rs...)
	h.confirmer(2).Confirm(t.Context(), h.orphans)
	equal(t, "calls", h.pods.Calls(), []string{"get pod default/app-0"})
}

func TestSandboxWithoutAPodCallsForAList(t *testing.T) {
	rs := entries(2)
	rs[1].Owner = reaper.Owner{Sandbox: "s1"}
	h := newHearing(t, &backendtest.Pods{}, rs...)
	_, errs := h.confirmer(2).Confirm(t.Context(), h.orphans)
	equal(t, "errors", errors.Join(errs...), nil)
	equal(t, "calls", h.pods.Calls(), []string{"list pods"})
}

// Promise 4. A listing is shared for so long that what rests on it can still be
// written in time.
func TestListingIsSharedForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t, &backendtest.Pods{}, entries(1)...)
		c := h.confirmer(1000)
		for range 3 {
			c.Confirm(t.Context(), h.orphans)
		}
		equal(t, "calls at once", h.pods.Calls(), []string{"list pods"})
		time.Sleep(time.Second)
		c.Confirm(t.Context(), h.orphans)
		equal(t, "calls a second later", h.pods.Calls(), nil)
		time.Sleep(time.Nanosecond)
		c.Confirm(t.Context(), h.orphans)
		equal(t, "calls after more than a second", h.pods.Calls(), []string{"list pods"})
	})
}

// Promise 1. A pod that came back is seen in the next listing, not in the
// shared one; until then only the token and Renew protect it.
func TestRenewIsNeverShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t, &backendtest.Pods{}, entries(1)...)
		ws, _ := h.confirmer(1000).Confirm(t.Context(), h.orphans)
		h.pods.Add(reaper.Pod{Ref: h.orphans[0].Allocation().Owner.Pod})
		w, err := ws[0].Renew(t.Context())
		refused(t, w, err, reaper.ErrReturned)
	})
}

func TestSlowListingIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t, &backendtest.Pods{}, entries(1)...)
		c := h.confirmer(1000)
		h.pods.OnCall(func(call string) error {
			if call == "list pods" {
				time.Sleep(5 * time.Second)
			}
			return nil
		})
		ws, _ := c.Confirm(t.Context(), h.orphans)
		if _, err := ws[0].Allocation(); !errors.Is(err, reaper.ErrAgain) {
			t.Errorf("by a listing of 5 s: %v, want ErrAgain", err)
		}
		h.pods.Calls()
		ws, _ = c.Confirm(t.Context(), h.orphans)
		if _, err := ws[0].Allocation(); err != nil {
			t.Errorf("next: %v", err)
		}
		equal(t, "calls", h.pods.Calls(), []string{"get pod default/app-0"})
	})
}

// Promise 4. Where reading a whole batch takes longer than a warrant is valid,
// a part of it is, and the next attempt is for the rest.
func TestLargeBatchAtASlowServerGetsClockSkew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t, &backendtest.Pods{}, entries(reaper.MaxBatch)...)
		h.pods.OnCall(func(string) error {
			time.Sleep(50 * time.Millisecond)
			return nil
		})
		c := h.confirmer(1)
		left := h.orphans
		for attempt := 1; len(left) > 0; attempt++ {
			if attempt == 4 {
				t.Fatalf("%d of %d have no warrant yet", len(left), len(h.orphans))
			}
			ws, errs := c.Confirm(t.Context(), left)
			var expired []reaper.Orphan
			for i, w := range ws {
				if _, err := w.Allocation(); errors.Is(err, reaper.ErrAgain) {
					expired = append(expired, left[i])
				} else if err != nil || errs[i] != nil {
					t.Fatal(err, errs[i])
				}
			}
			left = expired
		}
	})
}

// Confirmers are shared by the pools that are released at the same time.
func TestConfirmerIsSafeForConcurrentUse(t *testing.T) {
	for _, due := range []int{1, 1000} {
		h := newHearing(t, &backendtest.Pods{}, entries(20)...)
		c := h.confirmer(due)
		var wg sync.WaitGroup
		for i := range h.orphans {
			wg.Go(func() {
				ws, errs := c.Confirm(t.Context(), h.orphans[i:i+1])
				if _, err := ws[0].Allocation(); err != nil || errs[0] != nil {
					t.Error(err, errs[0])
				}
			})
		}
		wg.Wait()
	}
}

// Slow listing makes pools read their owners by themselves, side by side.
func TestPoolsAreReadSideBySideWhereListingIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHearing(t, &backendtest.Pods{}, entries(2)...)
		inside, leave := make(chan struct{}), make(chan struct{})
		var second atomic.Bool
		h.pods.OnCall(func(call string) error {
			switch call {
			case "list pods":
				time.Sleep(5 * time.Second)
			case "get pod default/app-0":
				inside <- struct{}{}
				<-leave
			case "get pod default/app-1":
				second.Store(true)
			}
			return nil
		})
		c := h.confirmer(1000)
		c.Confirm(t.Context(), h.orphans[:1])
		var wg sync.WaitGroup
		wg.Go(func() { c.Confirm(t.Context(), h.orphans[:1]) })
		<-inside
		wg.Go(func() { c.Confirm(t.Context(), h.orphans[1:]) })
		// A goroutine that waits for a mutex stops the bubble's clock, so that
		// no timer can end this wait.
		for range 10_000_000 {
			if second.Load() {
				break
			}
			runtime.Gosched()
		}
		if !second.Load() {
			t.Error("one unit waits for the other")
		}
		close(leave)
		wg.Wait()
	})
}
