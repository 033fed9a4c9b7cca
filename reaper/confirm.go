package reaper

import (
	"context"
	"sync"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// The second look reads a few owners one by one. For many owners, it lists all pods if
// that is cheaper. A page of a list has 500 pods and costs about as much as 20 reads of
// one pod. In a large cluster, a list may take too long for the looks that must be young:
// there it reads even many owners one by one.
const (
	fewDue      = 50 // up to this many orphans: read one by one
	podsPerRead = 20 // more orphans: list, if there are at most this many pods for each
	slowLists   = 5  // after this many lists that took too long, none is read for such looks
)

// A Confirmer looks at owners a second time, right before the write. It is safe for
// concurrent use. Concurrent callers share one list.
type Confirmer struct {
	cluster census.Cluster
	census  census.Census // of the first look
	bulk    bool          // a list is cheaper than single reads

	mu    sync.Mutex
	given map[*ipam.Allocation]judge.Orphan // those that got a warrant
	lists map[time.Duration]*lists          // by how old the looks may be
	took  time.Duration                     // the longest list so far, including the census's
}

// NewConfirmer returns a Confirmer for a plan with this many due orphans, which were
// judged by the census.
func NewConfirmer(cluster census.Cluster, census census.Census, due int) *Confirmer {
	return &Confirmer{
		cluster: cluster,
		census:  census,
		bulk:    due > fewDue && census.Size() <= due*podsPerRead,
		took:    census.Took(),
		given:   make(map[*ipam.Allocation]judge.Orphan),
		lists:   map[time.Duration]*lists{ipam.Freshness: {}, ipam.FreshnessNeverAdopted: {}},
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
// returns while the other warrants are still valid.
func (c *Confirmer) Confirm(ctx context.Context, orphans []judge.Orphan) ([]ipam.Warrant, []error) {
	warrants, errs := make([]ipam.Warrant, len(orphans)), make([]error, len(orphans))
	list, read := c.look(ctx, orphans)
	for i, o := range orphans {
		l := read
		if o.NeedsList() {
			l = list
		}
		if l.err != nil {
			errs[i] = l.err
			continue
		}
		warrants[i], errs[i] = c.warrant(o, l.second)
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
	for _, l := range c.lists {
		l.last = nil
	}
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
