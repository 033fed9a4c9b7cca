package reaper_test

import (
	"errors"
	"fmt"
	"net/netip"
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
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// Promise 1, 4. Owners that have a name are read by name, however many they are: a list comes from
// the cache from which the census came.
func TestHowOwnersAreLookedAt(t *testing.T) {
	unnamed := func(a *ipam.Allocation) { a.Owner = ipam.Owner{Sandbox: "another"} }
	grouped := func(a *ipam.Allocation) { a.Group = "g" }
	for _, tt := range []struct {
		name    string
		changes []func(*ipam.Allocation) // of the first allocations
		due     int
		want    []string // nil: a read of each owner
	}{
		{"one is due", nil, 1, []string{"get pod default/app-0"}},
		{"a batch is due", nil, ipam.MaxBatch, nil},
		{"one names no pod", []func(*ipam.Allocation){unnamed}, 2, []string{"get pod default/app-1", "list pods"}},
		{"its sibling names no pod", []func(*ipam.Allocation){func(a *ipam.Allocation) { a.Owner = ipam.Owner{Sandbox: "s1"}; grouped(a) }, grouped}, 3,
			[]string{"get pod default/app-1", "get pod default/app-2", "list pods"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			as := allocations(tt.due)
			for i, change := range tt.changes {
				change(&as[i])
			}
			if tt.want == nil {
				for _, a := range as {
					tt.want = append(tt.want, "get pod "+a.Owner.Pod.String())
				}
				slices.Sort(tt.want)
			}
			look := newSecondLook(t, &backendtest.Pods{}, as...)
			_, errs := look.confirmer().Confirm(t.Context(), look.orphans)
			equal(t, "errors", errors.Join(errs...), nil)
			calls := look.pods.Calls()
			slices.Sort(calls)
			equal(t, "calls", calls, tt.want)
		})
	}
}

// ran returns a pod that runs, and whose status has an address.
func ran(name string) census.Pod {
	pod := showing(ipam.PodRef{Namespace: "crowd", Name: name}, netip.MustParseAddr("10.9.0.1"))
	pod.UID, pod.InStatus = "uid of "+name, 1
	return pod
}

// Promise 1, 2. A look also reads a pod that the census saw running. If it is gone or another one,
// and so are four more, the API server may have been emptied or may be that of another cluster. The
// next look reads other pods.
func TestLookAtAnEmptiedOrSwappedServerGivesNoWarrant(t *testing.T) {
	swapped := func(p *backendtest.Pods, names ...string) {
		for _, name := range names {
			another := ran(name)
			another.UID = "of another cluster"
			p.Add(another)
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*backendtest.Pods)
		want   error
	}{
		{"it runs", func(*backendtest.Pods) {}, nil},
		{"it has ended, and is still there", func(p *backendtest.Pods) {
			pod := ran("0")
			pod.Finished = true
			p.Add(pod)
		}, nil},
		{"it is gone, and another is not", func(p *backendtest.Pods) { p.Remove(ran("0").Ref) }, nil},
		{"it is another one, and another is not", func(p *backendtest.Pods) { swapped(p, "0") }, nil},
		{"five are gone", func(p *backendtest.Pods) {
			for i := range 5 {
				p.Remove(ran(fmt.Sprint(i)).Ref)
			}
		}, ipam.ErrAgain},
		{"five are others", func(p *backendtest.Pods) { swapped(p, "0", "1", "2", "3", "4") }, ipam.ErrAgain},
		{"it cannot be read", func(p *backendtest.Pods) { p.OnCall(failing(errors.New("broken"), "get pod crowd/0")) }, ipam.ErrAgain},
	} {
		for _, owner := range []ipam.Owner{{Sandbox: "s1"}, {Pod: ipam.PodRef{Namespace: "default", Name: "app-0"}}} {
			t.Run(fmt.Sprint(tt.name, owner), func(t *testing.T) {
				a := allocations(1)[0]
				a.Owner = owner
				pods := &backendtest.Pods{}
				for i := range 6 {
					pods.Add(ran(fmt.Sprint(i)))
				}
				look := newSecondLook(t, pods, a)
				c := look.confirmer()
				tt.change(pods)
				ws, errs := c.Confirm(t.Context(), look.orphans)
				if tt.want != nil {
					refused(t, ws[0], errs[0], tt.want)
				} else {
					equal(t, "error", errs[0], nil)
				}
				_, errs = c.Confirm(t.Context(), look.orphans)
				equal(t, "error with the other pods", errs[0], nil)
			})
		}
	}
}

// Promise 1, 2. A read finds a pod that the list of the census should have had. Then no list of
// this API server is believed any more: any address may be that of a pod that it lacks.
func TestListThatLacksAPodEndsTheReleases(t *testing.T) {
	as := allocations(3)
	as[2].Owner = ipam.Owner{Sandbox: "another"}
	for _, tt := range []struct {
		name    string
		created time.Duration // after the census began
		uid     string        // of the pod of that name in the list; empty if there is none
		lacking bool
	}{
		{"the pod is old", -time.Hour, "", true},
		{"the list has an older pod of that name", -time.Hour, "earlier", true},
		{"the list has the pod", -time.Hour, "new", false},
		{"the pod is new", -30 * time.Second, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pods := &backendtest.Pods{}
			if tt.uid != "" {
				pods.Add(census.Pod{Ref: as[0].Owner.Pod, UID: tt.uid, Finished: true})
			}
			look := newSecondLook(t, pods, as...)
			pod := showing(as[0].Owner.Pod, as[0].IP)
			pod.UID, pod.Created = "new", look.census.Began().Add(tt.created)
			pods.Add(pod)
			c := look.confirmer()
			ws, errs := c.Confirm(t.Context(), look.orphans)
			equal(t, "lists lack pods", c.Lacking() != nil, tt.lacking)
			if !tt.lacking {
				refused(t, ws[0], errs[0], ipam.ErrReturned)
				equal(t, "errors of the others", errors.Join(errs[1:]...), nil)
				return
			}
			_, again := c.Confirm(t.Context(), look.orphans[1:])
			equal(t, "answers", len(errs)+len(again), 5)
			for i, err := range append(errs, again...) {
				if !errors.Is(err, ipam.ErrKept) || !strings.Contains(err.Error(), "lists of this API server lack pods: pod default/app-0 was created at") {
					t.Errorf("answer %d: %v, want that lists lack pods", i, err)
				}
			}
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
	ws, errs := look.confirmer().Confirm(t.Context(), look.orphans)
	refused(t, ws[0], errs[0], ipam.ErrAgain)
}

// Promise 4. A list is shared only as long as there is time left for the write.
func TestListOfPodsIsSharedForHalfOfTheTime(t *testing.T) {
	for adoption, fresh := range freshness {
		synctest.Test(t, func(t *testing.T) {
			a := allocations(1)[0]
			a.Adoption, a.Owner = adoption, ipam.Owner{Sandbox: "s1"}
			look := newSecondLook(t, &backendtest.Pods{}, a)
			c := look.confirmer()
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

// A list that hangs is given up while there is time left for the write.
func TestSlowListOfPodsIsGivenUp(t *testing.T) {
	for adoption, fresh := range freshness {
		synctest.Test(t, func(t *testing.T) {
			a := allocations(1)[0]
			a.Adoption, a.Owner = adoption, ipam.Owner{Sandbox: "s1"}
			look := newSecondLook(t, &backendtest.Pods{}, a)
			c := reaper.NewConfirmer(&slowCluster{Cluster: look.pods, hangs: []string{"list"}}, look.census)
			began := time.Now()
			ws, errs := c.Confirm(t.Context(), look.orphans)
			refused(t, ws[0], errs[0], ipam.ErrAgain)
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
		c := look.confirmer()
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
	synctest.Test(t, func(t *testing.T) { // so that no busy machine lets the warrants expire
		as := allocations(20)
		for i := range as[:10] {
			as[i].Owner = ipam.Owner{Sandbox: fmt.Sprint("s", i)}
		}
		pods := &backendtest.Pods{}
		pods.Add(ran("0"))
		look := newSecondLook(t, pods, as...)
		c := look.confirmer()
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

// freshness is how old a look may be, by the adoption of the allocation.
var freshness = map[ipam.Adoption]time.Duration{ipam.Adoptable: 2 * time.Second, ipam.NeverAdopted: 20 * time.Second}

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
		as[0].Adoption = ipam.NeverAdopted
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
