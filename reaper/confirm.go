package reaper

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ip-reaper/ip-reaper/policy"
)

// How owners are looked at a second time: one by one where few are due, by
// listing all pods where that is cheaper. A page of a list has 500 pods and
// costs about as much as 20 reads of one.
const (
	fewDue      = 50 // up to here, one by one
	podsPerRead = 20 // above: list if there are fewer pods than this per owner
	shareLook   = Freshness / 2
	readsAtOnce = 16
)

// A Confirmer looks at owners again, just before their reservations go. It is
// safe for concurrent use; concurrent callers share one listing.
type Confirmer struct {
	policy  policy.Policy
	cluster Cluster
	census  Census // the first look
	bulk    bool

	mu   sync.Mutex
	last Census // the last listing
	slow bool   // listing takes too long to be of use
}

// NewConfirmer prepares for confirming as many orphans as are due, that were
// judged by this policy and census.
func NewConfirmer(p policy.Policy, cluster Cluster, census Census, due int) *Confirmer {
	return &Confirmer{
		policy:  p,
		cluster: cluster,
		census:  census,
		bulk:    due > fewDue && census.Size() <= due*podsPerRead,
	}
}

// Confirm looks at the owners of the orphans again, and answers for each in the
// same order: a Warrant where the same reason still holds; else the zero
// Warrant and ErrReturned, or an error that wraps ErrAgain where that could not
// be told.
func (c *Confirmer) Confirm(ctx context.Context, orphans []Orphan) ([]Warrant, []error) {
	warrants, errs := make([]Warrant, len(orphans)), make([]error, len(orphans))
	census, looked, err := c.look(ctx, orphans)
	for i, o := range orphans {
		switch {
		case err != nil:
			errs[i] = err
		default:
			warrants[i], errs[i] = c.warrant(o, census, looked)
		}
	}
	return warrants, errs
}

// warrant judges the orphan again by what was just seen.
func (c *Confirmer) warrant(o Orphan, census Census, looked time.Time) (Warrant, error) {
	if o.unit == nil {
		return Warrant{}, ErrNoWarrant
	}
	f := assess(c.policy, census, o)
	switch {
	case f.standing == Suspected && f.reason == o.reason:
		return Warrant{orphan: o, confirmed: looked, renew: c.renew}, nil
	case f.reason == NoCensus:
		return Warrant{}, fmt.Errorf("%w: its owner could not be looked at", ErrAgain)
	default:
		return Warrant{}, fmt.Errorf("%w: now %s", ErrReturned, f.reason)
	}
}

// renew is Warrant.Renew: always a new look, of that one pod if it is known.
func (c *Confirmer) renew(ctx context.Context, o Orphan) (Warrant, error) {
	look := c.read
	if unnamed(o) {
		look = c.list
	}
	census, looked, err := look(ctx, []Orphan{o})
	if err != nil {
		return Warrant{}, err
	}
	return c.warrant(o, census, looked)
}

// look returns a census in which the owners are as of a time that is returned
// too, and that is well within Freshness if it was at all possible. An entry
// that names no pod calls for all of them.
func (c *Confirmer) look(ctx context.Context, orphans []Orphan) (Census, time.Time, error) {
	needed := slices.ContainsFunc(orphans, unnamed)
	if !c.bulk && !needed {
		return c.read(ctx, orphans)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slow && !needed {
		return c.read(ctx, orphans)
	}
	if time.Since(c.last.began) > shareLook {
		census, began, err := c.list(ctx, orphans)
		if err != nil {
			return Census{}, time.Time{}, err
		}
		c.last, c.slow = census, time.Since(began) > shareLook
	}
	return c.last, c.last.began, nil
}

// unnamed reports whether the orphan names no pod to look at.
func unnamed(o Orphan) bool { return o.reservation.Owner.Pod == PodRef{} }

// list looks at every pod.
func (c *Confirmer) list(ctx context.Context, _ []Orphan) (Census, time.Time, error) {
	began := time.Now()
	pods, err := c.cluster.Pods(ctx)
	if err != nil {
		return Census{}, time.Time{}, fmt.Errorf("%w: list pods: %w", ErrAgain, err)
	}
	census := NewCensus(began, pods, nil)
	census.sets = c.census.sets
	return census, began, nil
}

// read reads the owners one by one.
func (c *Confirmer) read(ctx context.Context, orphans []Orphan) (Census, time.Time, error) {
	looked := time.Now()
	fresh := make(map[PodRef]look)
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(readsAtOnce)
	for ref := range refs(orphans) {
		g.Go(func() error {
			pod, presence, err := c.cluster.Pod(ctx, ref)
			if err != nil {
				return fmt.Errorf("%w: get pod %s: %w", ErrAgain, ref, err)
			}
			mu.Lock()
			defer mu.Unlock()
			fresh[ref] = look{pod, presence}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return Census{}, time.Time{}, err
	}
	return c.census.with(fresh), looked, nil
}

// refs returns the pods that the orphans name, each once.
func refs(orphans []Orphan) map[PodRef]struct{} {
	set := make(map[PodRef]struct{}, len(orphans))
	for _, o := range orphans {
		set[o.reservation.Owner.Pod] = struct{}{}
	}
	return set
}
