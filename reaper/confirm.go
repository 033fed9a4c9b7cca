package reaper

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// The second look reads few owners one by one. For many owners, it lists all pods if
// that is cheaper. A page of a list has 500 pods and costs about as much as 20 reads of
// one pod.
const (
	fewDue      = 50            // up to this many orphans: read one by one
	podsPerRead = 20            // more orphans: list, if there are at most this many pods for each
	shareLook   = Freshness / 2 // how long a list is shared
	readsAtOnce = 16
)

// A Confirmer looks at owners a second time, right before the write. It is safe for
// concurrent use. Concurrent callers share one list.
type Confirmer struct {
	cluster Cluster
	census  Census // of the first look
	bulk    bool   // a list is cheaper than single reads

	mu   sync.Mutex
	last Census // with the last list of pods
	slow bool   // the list took longer than it may be shared
}

// NewConfirmer returns a Confirmer for a plan of so many orphans, which were judged by
// the census.
func NewConfirmer(cluster Cluster, census Census, due int) *Confirmer {
	return &Confirmer{
		cluster: cluster,
		census:  census,
		bulk:    due > fewDue && census.Size() <= due*podsPerRead,
	}
}

// Confirm looks at the owners of the orphans again. It returns a Warrant or an error
// for each, in the same order.
//
// It returns a Warrant if the reason is still the same, or if the owner is absent by
// now. The error wraps ErrReturned if the owner is there, ErrKept if the rules now give
// another reason, and ErrAgain if a later look may succeed. It wraps none of them
// if no later look can succeed, for example because reading pods is forbidden.
func (c *Confirmer) Confirm(ctx context.Context, orphans []Orphan) ([]Warrant, []error) {
	warrants, errs := make([]Warrant, len(orphans)), make([]error, len(orphans))
	census, err := c.look(ctx, orphans)
	second := newSecondLook(census)
	for i, o := range orphans {
		if err != nil {
			errs[i] = err
			continue
		}
		warrants[i], errs[i] = c.warrant(o, second)
	}
	return warrants, errs
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
	return Warrant{orphan: o, confirmed: looked, renew: c.renew}, nil
}

// Forget makes the next Confirm list the pods again.
func (c *Confirmer) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = Census{}
}

// renew implements Warrant.Renew. It always looks again. If the store names the pod, it
// reads that pod only.
func (c *Confirmer) renew(ctx context.Context, o Orphan) (Warrant, error) {
	if !needsList(o) {
		return c.warrant(o, newSecondLook(c.read(ctx, []Orphan{o})))
	}
	census, err := c.list(ctx)
	if err != nil {
		return Warrant{}, err
	}
	return c.warrant(o, newSecondLook(census))
}

// look returns a census with a second look at every owner, which is within Freshness
// unless the API server is slow. If an allocation names no pod, it lists all pods.
func (c *Confirmer) look(ctx context.Context, orphans []Orphan) (Census, error) {
	needed := slices.ContainsFunc(orphans, needsList)
	if c.bulk || needed {
		census, err := c.shared(ctx, needed)
		if err != nil || !census.began.IsZero() {
			return census, err
		}
	}
	return c.read(ctx, orphans), nil
}

// shared returns a list of all pods that is not older than shareLook. If the list takes
// longer than that and is not needed, it returns the zero Census.
func (c *Confirmer) shared(ctx context.Context, needed bool) (Census, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slow && !needed {
		return Census{}, nil
	}
	if time.Since(c.last.began) > shareLook {
		census, err := c.list(ctx)
		if err != nil {
			return Census{}, err
		}
		c.last, c.slow = census, time.Since(census.began) > shareLook
	}
	return c.last, nil
}

// needsList reports whether the rules need a list of all pods: the store does not name
// the pod of the orphan, or that of a sibling.
func needsList(o Orphan) bool {
	namesNone := func(o Orphan) bool {
		return o.allocation.Owner.Pod == PodRef{} || o.allocation.Inferred
	}
	return namesNone(o) || slices.ContainsFunc(o.group, namesNone)
}

// list lists all pods.
func (c *Confirmer) list(ctx context.Context) (Census, error) {
	began := time.Now()
	pods, err := c.cluster.Pods(ctx)
	if err != nil {
		return Census{}, fmt.Errorf("list pods: %w", again(err))
	}
	return c.census.relisted(began, pods), nil
}

// read reads the owners one by one. Each look has its own time and its own error, so a
// slow or failed one does not affect the others.
func (c *Confirmer) read(ctx context.Context, orphans []Orphan) Census {
	fresh := make(map[PodRef]look)
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(readsAtOnce)
	for ref := range refs(orphans) {
		g.Go(func() error {
			l := look{began: time.Now()}
			if l.pod, l.presence, l.err = c.cluster.Pod(ctx, ref); l.err != nil {
				l.presence, l.err = Unknown, fmt.Errorf("get pod %s: %w", ref, again(l.err))
			}
			mu.Lock()
			defer mu.Unlock()
			fresh[ref] = l
			return nil
		})
	}
	_ = g.Wait() // every failure is in its look
	return c.census.with(fresh)
}

// refs returns the pods that the orphans and their siblings name.
func refs(orphans []Orphan) map[PodRef]struct{} {
	set := make(map[PodRef]struct{}, len(orphans))
	for _, o := range orphans {
		set[o.allocation.Owner.Pod] = struct{}{}
		for _, sibling := range o.group {
			set[sibling.allocation.Owner.Pod] = struct{}{}
		}
	}
	return set
}
