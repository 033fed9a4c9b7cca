package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A slowCluster does not answer some requests before their context ends: "list", or the
// name of a pod.
type slowCluster struct {
	census.Cluster
	mu    sync.Mutex
	hangs []string
}

// hang waits for the end of the context if the request hangs.
func (s *slowCluster) hang(ctx context.Context, request string) error {
	s.mu.Lock()
	hangs := slices.Contains(s.hangs, request)
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (s *slowCluster) Pods(ctx context.Context) ([]census.Pod, error) {
	if err := s.hang(ctx, "list"); err != nil {
		return nil, err
	}
	return s.Cluster.Pods(ctx)
}

func (s *slowCluster) Pod(ctx context.Context, ref ipam.PodRef) (census.Pod, census.Presence, error) {
	if err := s.hang(ctx, ref.Name); err != nil {
		return census.Pod{}, census.Unknown, err
	}
	return s.Cluster.Pod(ctx, ref)
}

// Promise 4, 9. The others of the batch get warrants that leave time for the write.
func TestSlowLookSpoilsNoOther(t *testing.T) {
	sandbox := func(a *ipam.Allocation) { a.Owner = ipam.Owner{Sandbox: "s1"} }
	for _, tt := range []struct {
		name    string
		changes map[int]func(*ipam.Allocation)
		hangs   []string
		slow    []int // the orphans without a warrant
		error   string
	}{
		{"one pod", nil, []string{"app-1"}, []int{1}, "get pod default/app-1: the second look took too long"},
		{"a list that one of them needs", map[int]func(*ipam.Allocation){2: sandbox}, []string{"list"}, []int{2},
			"the second look took too long: list pods"},
		{"a pod of another, and a list that one needs", map[int]func(*ipam.Allocation){2: sandbox}, []string{"app-1"}, []int{1},
			"get pod default/app-1: the second look took too long"},
		{"a pod of a group", map[int]func(*ipam.Allocation){
			0: func(a *ipam.Allocation) { a.Group = "g" }, 3: func(a *ipam.Allocation) { a.Group = "g" },
		}, []string{"app-3"}, []int{0, 3}, "get pod default/app-3: the second look took too long"},
		{"a list that a group needs", map[int]func(*ipam.Allocation){
			0: func(a *ipam.Allocation) { a.Group = "g" }, 3: func(a *ipam.Allocation) { sandbox(a); a.Group = "g" },
		}, []string{"list"}, []int{0, 3}, "the second look took too long: list pods"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				as := allocations(5)
				for i, change := range tt.changes {
					change(&as[i])
				}
				look := newSecondLook(t, &backendtest.Pods{}, as...)
				c := reaper.NewConfirmer(&slowCluster{Cluster: look.pods, hangs: tt.hangs}, look.census)
				ws, errs := c.Confirm(t.Context(), look.orphans)
				time.Sleep(ipam.Freshness / 4) // the write
				var slow []int
				for i := range ws {
					if errs[i] != nil {
						slow = append(slow, i)
						refused(t, ws[i], errs[i], ipam.ErrAgain)
						if !strings.Contains(errs[i].Error(), tt.error) {
							t.Errorf("orphan %d: %v, want %q", i, errs[i], tt.error)
						}
					} else if _, err := ws[i].Allocation(); err != nil {
						t.Errorf("orphan %d: %v, want a valid warrant", i, err)
					}
				}
				equal(t, "orphans without a warrant", slow, tt.slow)
			})
		})
	}
}

// Promise 4. Seventeen pods do not fit into the second: the looks that have not begun by then
// do not begin any more.
func TestNoLookBeginsWhenTheFirstOneIsASecondOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		look := newSecondLook(t, &backendtest.Pods{}, allocations(17)...)
		hangs := make([]string, 17)
		for i := range hangs {
			hangs[i] = fmt.Sprint("app-", i)
		}
		began := time.Now()
		slow := &slowCluster{Cluster: look.pods, hangs: hangs}
		_, errs := reaper.NewConfirmer(slow, look.census).Confirm(t.Context(), look.orphans)
		equal(t, "answers", len(errs), 17)
		for _, err := range errs {
			if !errors.Is(err, ipam.ErrAgain) {
				t.Errorf("%v, want ErrAgain", err)
			}
		}
		equal(t, "time", time.Since(began), ipam.Freshness/2)
	})
}

// Each look at an allocation that names no pod would cost the API server a list that is given up.
// After five in a run there are no more, but an allocation that has more time still gets one.
func TestListsThatAreTooSlowEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		as := allocations(2)
		as[0].Owner, as[1].Owner = ipam.Owner{Sandbox: "one"}, ipam.Owner{Sandbox: "another"}
		as[1].Adoption = ipam.NeverAdopted
		look := newSecondLook(t, &backendtest.Pods{}, as...)
		lists := 0
		c := reaper.NewConfirmer(slowPods{look.pods, &lists}, look.census)
		for attempt := range 8 {
			ws, errs := c.Confirm(t.Context(), look.orphans[:1])
			refused(t, ws[0], errs[0], ipam.ErrAgain)
			c.Forget()
			equal(t, "lists", lists, min(attempt+1, 5))
		}
		if _, errs := c.Confirm(t.Context(), look.orphans[1:]); errs[0] != nil || lists != 6 {
			t.Errorf("%v after %d lists, want a warrant after 6", errs[0], lists)
		}
	})
}

// slowPods takes Freshness to list pods, and counts the lists.
type slowPods struct {
	census.Cluster
	lists *int
}

func (s slowPods) Pods(ctx context.Context) ([]census.Pod, error) {
	*s.lists++
	select {
	case <-time.After(ipam.Freshness):
		return s.Cluster.Pods(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Promise 4. A list that began while the last of the slow ones was under way is not given to a look
// that begins after it.
func TestRenewTakesNoListFromBeforeTheListsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := allocations(1)[0]
		a.Owner = ipam.Owner{Sandbox: "one"}
		look := newSecondLook(t, &backendtest.Pods{}, a)
		s := &slowThenAnswered{Cluster: look.pods, slow: 5}
		c := reaper.NewConfirmer(s, look.census)
		for range 4 {
			c.Confirm(t.Context(), look.orphans)
		}
		var fifth sync.WaitGroup
		fifth.Go(func() { c.Confirm(t.Context(), look.orphans) })
		time.Sleep(ipam.Freshness/2 + time.Millisecond) // the fifth list is no longer shared
		ws, errs := c.Confirm(t.Context(), look.orphans)
		equal(t, "errors", errors.Join(errs...), nil)
		fifth.Wait()
		w, err := renewed(t.Context(), ws[0])
		refused(t, w, err, ipam.ErrAgain)
	})
}

// slowThenAnswered never answers the first lists, and then takes nine tenths of a second.
type slowThenAnswered struct {
	census.Cluster
	mu   sync.Mutex
	slow int
}

func (s *slowThenAnswered) Pods(ctx context.Context) ([]census.Pod, error) {
	s.mu.Lock()
	s.slow--
	hangs := s.slow >= 0
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(900 * time.Millisecond)
	return s.Cluster.Pods(ctx)
}
