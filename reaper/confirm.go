package reaper

import (
	"context"
	"sync"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// slowLists is after how many lists of all pods that took too long no more are read.
const slowLists = 5

// A Confirmer looks at owners a second time, right before the write. It is safe for
// concurrent use. Concurrent callers share one list.
//
// Owners that have a name are read by name, because a list of pods comes from the API server's
// watch cache, as the census did. A cache that has lost an event lacks a pod in every list until
// it is restarted (kubernetes issue 123072). A read by name comes from etcd (Get in
// k8s.io/apiserver/pkg/storage/cacher). Only allocations that name no pod rest on another list.
type Confirmer struct {
	cluster census.Cluster
	census  census.Census // of the first look

	mu      sync.Mutex
	given   map[*ipam.Allocation]judge.Orphan // those that got a warrant
	last    *listing                          // the latest list; nil if there is none to share
	slow    map[time.Duration]int             // the lists that took too long, by how old the looks may be
	next    int                               // the pod of the census at which the search for a witness goes on
	lacking error                             // why no list is believed any more
}

// NewConfirmer returns a Confirmer for orphans that were judged by the census.
func NewConfirmer(cluster census.Cluster, census census.Census) *Confirmer {
	return &Confirmer{
		cluster: cluster,
		census:  census,
		given:   make(map[*ipam.Allocation]judge.Orphan),
		slow:    make(map[time.Duration]int),
	}
}

// Confirm looks at the owners of the orphans again. It returns a Warrant or an error
// for each, in the same order.
//
// It returns a Warrant if the reason is still the same, or if the owner is absent now.
// The error wraps ErrReturned if the owner is there, ErrKept if the rules now give
// another reason, and ErrAgain if a later look may succeed. It wraps none of them
// if no later look can succeed, for example because reading pods is forbidden.
//
// A look that fails or takes too long affects only the orphans that need it. Confirm
// returns while the other warrants are still valid. It gives none at all if a pod that the census
// saw running is gone, or if a list lacks a pod: see Lacking.
func (c *Confirmer) Confirm(ctx context.Context, orphans []judge.Orphan) ([]ipam.Warrant, []error) {
	warrants, errs := make([]ipam.Warrant, len(orphans)), make([]error, len(orphans))
	second, listErr, err := c.look(ctx, orphans)
	for i, o := range orphans {
		switch {
		case err != nil:
			errs[i] = err
		case o.NeedsList() && listErr != nil:
			errs[i] = listErr
		default:
			warrants[i], errs[i] = c.warrant(o, second)
		}
	}
	return warrants, errs
}

// warrant decides again on the orphan and its siblings, by the second look.
func (c *Confirmer) warrant(o judge.Orphan, second *judge.SecondLook) (ipam.Warrant, error) {
	looked, err := second.StillOrphaned(o)
	if err != nil {
		return ipam.Warrant{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given[o.Allocation()] = o
	return ipam.NewWarrant(o.Allocation(), looked, c), nil
}

// Forget makes the next Confirm look at the pods again.
func (c *Confirmer) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = nil
}

// Lacking returns why no list of this API server is believed any more; nil if none was found to
// lack a pod. Then any address may be that of a pod which the lists lack, so no more warrants are
// given.
func (c *Confirmer) Lacking() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lacking
}

// Renew implements Renewer. It never shares a list that began before the call. It looks even
// if the warrants have expired: a look needs none.
func (c *Confirmer) Renew(ctx context.Context, ws []ipam.Warrant) ([]ipam.Warrant, []error) {
	orphans := make([]judge.Orphan, len(ws))
	c.mu.Lock()
	for i, w := range ws {
		orphans[i] = c.given[w.For()]
	}
	c.mu.Unlock()
	c.Forget()
	if !ipam.TurnOf(ctx).SendBy.IsZero() {
		ctx = ipam.SendBy(ctx, time.Time{})
	}
	return c.Confirm(ctx, orphans)
}
