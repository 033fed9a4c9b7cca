package reaper

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// The second look reads few owners one by one. For many owners, it lists all pods if
// that is cheaper. A page of a list has 500 pods and costs about as much as 20 reads of
// one pod. In a large cluster, a list takes too long: there it follows the pods, for many
// owners and for those that need a list. A look at followed pods waits for about a second, so
// it is worth that only where a list takes long.
const (
	fewDue      = 50            // up to this many orphans: read one by one
	podsPerRead = 20            // more orphans: list, if there are at most this many pods for each
	quickList   = Freshness / 8 // if the census list took longer, watch instead of listing again
)

// A Confirmer looks at owners a second time, right before the write. It is safe for
// concurrent use. Concurrent callers share one list.
type Confirmer struct {
	cluster Cluster
	census  Census    // of the first look
	many    bool      // more than few are due
	bulk    bool      // a list is cheaper than single reads
	pods    *follower // nil if the pods cannot be followed

	mu     sync.Mutex
	last   *listing  // the latest; nil if there is none to share
	slow   bool      // a list failed, or took longer than it may be shared
	forgot time.Time // when Forget was called last
}

// NewConfirmer returns a Confirmer for a plan of so many orphans, which were judged by
// the census. The caller must Close it.
func NewConfirmer(cluster Cluster, census Census, due int) *Confirmer {
	c := &Confirmer{
		cluster: cluster,
		census:  census,
		many:    due > fewDue,
		bulk:    due > fewDue && census.Size() <= due*podsPerRead,
	}
	if !census.sandboxes.read {
		c.pods = newFollower(cluster, census)
	}
	return c
}

// Begin begins to follow the pods if a look at the orphans of the plan will need that. The
// first such look takes a second or two, and so it comes while the run does other things.
func (c *Confirmer) Begin(ctx context.Context, plan Plan) {
	if c.follows(plan.Orphans()) {
		c.pods.begin(ctx)
	}
}

// follows reports whether a look at the orphans follows the pods: for many of them, or for
// one that needs a list, if the list of the census took long, or a later one did or failed.
func (c *Confirmer) follows(orphans []Orphan) bool {
	if c.pods == nil || !c.many && !slices.ContainsFunc(orphans, needsList) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slow || c.census.took > quickList
}

// Close ends the requests that go on between two calls of Confirm. It is called once, after
// the last use of the Confirmer and its warrants.
func (c *Confirmer) Close() {
	if c.pods != nil {
		c.pods.end()
	}
}

// Confirm looks at the owners of the orphans again. It returns a Warrant or an error
// for each, in the same order.
//
// It returns a Warrant if the reason is still the same, or if the owner is absent by
// now. The error wraps ErrReturned if the owner is there, ErrKept if the rules now give
// another reason, and ErrAgain if a later look may succeed. It wraps none of them
// if no later look can succeed, for example because reading pods is forbidden.
//
// A look that fails or takes too long affects only the orphans that need it. Confirm
// returns while the other warrants are still valid.
func (c *Confirmer) Confirm(ctx context.Context, orphans []Orphan) ([]Warrant, []error) {
	warrants, errs := make([]Warrant, len(orphans)), make([]error, len(orphans))
	if c.follow(ctx, orphans, c.forgotten(), func(second *secondLook) {
		for i, o := range orphans {
			warrants[i], errs[i] = c.warrant(o, second)
		}
	}) {
		return warrants, errs
	}
	list, read := c.look(ctx, orphans)
	for i, o := range orphans {
		l := read
		if needsList(o) {
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

// follow calls judge with a second look at all pods that began after the given time. It
// reports false if the pods are not followed for these orphans, or if no such look comes.
func (c *Confirmer) follow(ctx context.Context, orphans []Orphan, after time.Time, judge func(*secondLook)) bool {
	return c.follows(orphans) && c.pods.look(ctx, after, func(census Census) { judge(newSecondLook(census)) })
}

// warrant decides again on the orphan and its siblings, by the second look.
func (c *Confirmer) warrant(o Orphan, second *secondLook) (Warrant, error) {
	if o.facts == nil {
		return Warrant{}, ErrNoWarrant
	}
	looked, err := second.stillOrphaned(o)
	if err != nil {
		return Warrant{}, err
	}
	for _, sibling := range o.group {
		at, err := second.stillOrphaned(sibling)
		if err != nil {
			return Warrant{}, fmt.Errorf("%w (of its sibling %s)", err, sibling.allocation.label())
		}
		if at.Before(looked) {
			looked = at
		}
	}
	return Warrant{orphan: o, confirmed: looked, by: c}, nil
}

// Forget makes the next Confirm look at the pods again.
func (c *Confirmer) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.forgot = nil, time.Now()
}

// forgotten returns when Forget was called last.
func (c *Confirmer) forgotten() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forgot
}

// renew implements Renew. It never shares a list that began before the call.
func (c *Confirmer) renew(ctx context.Context, orphans []Orphan) ([]Warrant, []error) {
	c.Forget()
	return c.Confirm(ctx, orphans)
}
