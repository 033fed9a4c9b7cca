package reaper_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// Promise 1, 2, 4. Each warrant is renewed by itself, and all owners are looked at together.
func TestRenewLooksAtTheOwnersOfABatchTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // so that no busy machine lets the warrants expire
		look := newSecondLook(t, &backendtest.Pods{}, allocations(4)...)
		ws, errs := look.confirmer().Confirm(t.Context(), look.orphans[:3])
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		look.pods.Calls()
		look.pods.Add(census.Pod{Ref: look.orphans[1].Allocation().Owner.Pod})
		fresh, errs := ipam.Renew(t.Context(), append(slices.Clone(ws), ipam.Warrant{}))
		refused(t, fresh[1], errs[1], ipam.ErrReturned)
		refused(t, fresh[3], errs[3], ipam.ErrNoWarrant)
		for _, i := range []int{0, 2} {
			a, err := fresh[i].Allocation()
			if errs[i] != nil || err != nil {
				t.Errorf("%v, %v, want a fresh warrant", errs[i], err)
			}
			equal(t, "allocation", a, *look.orphans[i].Allocation(), asValues)
		}
		calls := look.pods.Calls()
		slices.Sort(calls)
		equal(t, "calls", calls, []string{"get pod default/app-0", "get pod default/app-1", "get pod default/app-2"})
	})
}

// A lateCluster answers half a second after the moment that its answer describes.
type lateCluster struct{ census.Cluster }

func (c lateCluster) Pods(ctx context.Context) ([]census.Pod, error) {
	pods, err := c.Cluster.Pods(ctx)
	time.Sleep(500 * time.Millisecond)
	return pods, err
}

// Promise 1, 4. A list that began before the call may have missed a pod, even if it is still
// under way.
func TestRenewSharesNoListThatBeganBefore(t *testing.T) {
	for _, when := range []time.Duration{100 * time.Millisecond, 600 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			a := allocations(1)[0]
			a.Owner = ipam.Owner{Sandbox: "s1"}
			look := newSecondLook(t, &backendtest.Pods{}, a)
			c := reaper.NewConfirmer(lateCluster{look.pods}, look.census)
			ws, errs := c.Confirm(t.Context(), look.orphans)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			var wg sync.WaitGroup
			wg.Go(func() { c.Confirm(t.Context(), look.orphans) }) // lists again
			time.Sleep(when)
			look.pods.Add(showing(other, a.IP))
			w, err := renewed(t.Context(), ws[0])
			refused(t, w, err, ipam.ErrReturned)
			wg.Wait()
		})
	}
}

// A sendByCluster notes by when the requests of a list must be sent.
type sendByCluster struct {
	census.Cluster
	sendBy []time.Time
}

func (c *sendByCluster) Pods(ctx context.Context) ([]census.Pod, error) {
	c.sendBy = append(c.sendBy, ipam.TurnOf(ctx).SendBy)
	return c.Cluster.Pods(ctx)
}

// A renewal looks for a warrant that the backend does not have yet. If it had to be sent before
// the old warrant expires, a lease whose DEL takes longer than that would stay for ever.
func TestRenewMayBeSentAfterTheWarrantHasExpired(t *testing.T) {
	a := allocations(1)[0]
	a.Adoption, a.Owner.Pod = ipam.NeverAdopted, ipam.PodRef{}
	look := newSecondLook(t, &backendtest.Pods{}, a)
	cluster := &sendByCluster{Cluster: look.pods}
	ws, errs := reaper.NewConfirmer(cluster, look.census).Confirm(t.Context(), look.orphans)
	equal(t, "error", errs[0], nil)
	_, err := renewed(ipam.SendBy(t.Context(), ipam.FirstToExpire(ws), nil), ws[0])
	equal(t, "error of the renewal", err, nil)
	equal(t, "the looks are sent by", cluster.sendBy, make([]time.Time, 2))
}
