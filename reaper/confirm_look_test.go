package reaper_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// addUnrelatedPods adds n pods that own no allocation.
func addUnrelatedPods(pods *backendtest.Pods, n int) {
	for i := range n {
		pods.Add(census.Pod{Ref: ipam.PodRef{Namespace: "crowd", Name: fmt.Sprint(i)}})
	}
}

// The second look makes as few requests to the API server as possible.
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
			addUnrelatedPods(pods, tt.crowd)
			look := newSecondLook(t, pods, allocations(2)...)
			_, errs := look.confirmer(tt.due).Confirm(t.Context(), look.orphans)
			equal(t, "errors", errors.Join(errs...), nil)
			calls := look.pods.Calls()
			slices.Sort(calls)
			equal(t, "calls", calls, tt.want)
		})
	}
}

// Promise 2. The limit for an empty census applies at the second look too.
func TestEmptyListAtTheSecondLookIsNotBelieved(t *testing.T) {
	a := allocations(1)[0]
	a.Owner = ipam.Owner{Sandbox: "another"}
	pods := &backendtest.Pods{}
	pods.Add(census.Pod{Ref: other})
	look := newSecondLook(t, pods, a)
	pods.Remove(other)
	ws, errs := look.confirmer(1).Confirm(t.Context(), look.orphans)
	refused(t, ws[0], errs[0], ipam.ErrAgain)
}

// Promise 4. A list is shared only as long as there is time left for the write.
func TestListOfPodsIsSharedForHalfOfTheTime(t *testing.T) {
	for never, fresh := range freshness {
		synctest.Test(t, func(t *testing.T) {
			a := allocations(1)[0]
			a.NeverAdopted = never
			look := newSecondLook(t, &backendtest.Pods{}, a)
			c := look.confirmer(1000)
			for range 3 {
				c.Confirm(t.Context(), look.orphans)
			}
			equal(t, "calls at once", look.pods.Calls(), []string{"list pods"})
			time.Sleep(fresh / 2)
			c.Confirm(t.Context(), look.orphans)
			equal(t, "calls after half of the time", look.pods.Calls(), nil)
			time.Sleep(time.Nanosecond)
			c.Confirm(t.Context(), look.orphans)
			equal(t, "calls after more than that", look.pods.Calls(), []string{"list pods"})
		})
	}
}

// If the list of the census took longer than a list may be shared, the owners of adoptable
// allocations are read one by one. For the others, a list serves ten times as long.
func TestListThatTookLongIsNotReadAgainForAdoptableAllocations(t *testing.T) {
	for never, want := range map[bool]string{false: "get pod default/app-0", true: "list pods"} {
		synctest.Test(t, func(t *testing.T) {
			a := allocations(1)[0]
			a.NeverAdopted = never
			pods := &backendtest.Pods{}
			look := newSecondLook(t, pods, a)
			look.pods.OnCall(func(call string) error {
				if call == "list pods" {
					time.Sleep(time.Second + 1)
				}
				return nil
			})
			census, err := census.Take(t.Context(), look.pods, census.Scope{})
			if err != nil {
				t.Fatal(err)
			}
			look.pods.Calls()
			ws, errs := reaper.NewConfirmer(look.pods, census, 1000).Confirm(t.Context(), look.orphans)
			if _, err := ws[0].Allocation(); err != nil || errs[0] != nil {
				t.Errorf("%v, %v, want a warrant", errs[0], err)
			}
			equal(t, "calls", look.pods.Calls(), []string{want})
		})
	}
}

// A list that hangs is given up, and owners that the store names are read one by one.
func TestSlowListOfPodsIsGivenUp(t *testing.T) {
	for never, fresh := range freshness {
		synctest.Test(t, func(t *testing.T) {
			as := allocations(2)
			as[0].NeverAdopted, as[1].NeverAdopted = never, never
			look := newSecondLook(t, &backendtest.Pods{}, as...)
			c := reaper.NewConfirmer(&slowCluster{Cluster: look.pods, hangs: []string{"list"}}, look.census, 1000)
			began := time.Now()
			for attempt := range 2 {
				ws, errs := c.Confirm(t.Context(), look.orphans[attempt:attempt+1])
				if _, err := ws[0].Allocation(); err != nil || errs[0] != nil {
					t.Errorf("attempt %d: %v, %v, want a warrant", attempt, errs[0], err)
				}
			}
			equal(t, "calls", look.pods.Calls(), []string{"get pod default/app-0", "get pod default/app-1"})
			equal(t, "time", time.Since(began), fresh*3/4)
		})
	}
}

// Promise 4. If reading a whole batch takes longer than a second, only part of the batch gets
// valid warrants. The next attempt is for the rest.
func TestLargeBatchAtASlowServerIsConfirmedInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		look := newSecondLook(t, &backendtest.Pods{}, allocations(ipam.MaxBatch)...)
		look.pods.OnCall(func(string) error {
			time.Sleep(50 * time.Millisecond)
			return nil
		})
		c := look.confirmer(1)
		left := look.orphans
		for attempt := 1; len(left) > 0; attempt++ {
			if attempt == 6 { // a run makes five
				t.Fatalf("%d of %d have no warrant yet", len(left), len(look.orphans))
			}
			ws, errs := c.Confirm(t.Context(), left)
			var expired []judge.Orphan
			for i, w := range ws {
				if _, err := w.Allocation(); err == nil {
					continue
				}
				if !errors.Is(errs[i], ipam.ErrAgain) {
					t.Fatal(errs[i])
				}
				expired = append(expired, left[i])
			}
			left = expired
		}
	})
}

// Pools that are released at the same time share a Confirmer.
func TestConfirmerIsSafeForConcurrentUse(t *testing.T) {
	for _, due := range []int{1, 1000} {
		synctest.Test(t, func(t *testing.T) { // so that no busy machine lets the warrants expire
			look := newSecondLook(t, &backendtest.Pods{}, allocations(20)...)
			c := look.confirmer(due)
			var wg sync.WaitGroup
			for i := range look.orphans {
				wg.Go(func() {
					ws, errs := c.Confirm(t.Context(), look.orphans[i:i+1])
					if _, err := ws[0].Allocation(); err != nil || errs[0] != nil {
						t.Error(err, errs[0])
					}
				})
			}
			wg.Wait()
		})
	}
}
