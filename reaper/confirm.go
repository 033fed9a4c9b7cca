package reaper

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
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

// A Confirmer looks at owners again, just before their allocations go. It is
// safe for concurrent use; concurrent callers share one listing.
type Confirmer struct {
	cluster Cluster
	census  Census // the first look
	bulk    bool

	mu   sync.Mutex
	last Census // the last listing
	slow bool   // listing takes too long to be of use
}

// NewConfirmer prepares for confirming as many orphans as are due, which were judged by
// this census.
func NewConfirmer(cluster Cluster, census Census, due int) *Confirmer {
	return &Confirmer{
		cluster: cluster,
		census:  census,
		bulk:    due > fewDue && census.Size() <= due*podsPerRead,
	}
}

// Confirm looks at the owners of the orphans again, and answers for each in the
// same order: a Warrant where the same reason still holds, or the owner is gone
// by now; else the zero Warrant and an error. It wraps ErrReturned where the
// owner is there, ErrKept where something else speaks against the release, and
// ErrAgain where a later look may tell; where none will, as when it is
// forbidden, it wraps none of them.
func (c *Confirmer) Confirm(ctx context.Context, orphans []Orphan) ([]Warrant, []error) {
	warrants, errs := make([]Warrant, len(orphans)), make([]error, len(orphans))
	census, err := c.look(ctx, orphans)
	for i, o := range orphans {
		if err != nil {
			errs[i] = err
			continue
		}
		warrants[i], errs[i] = c.warrant(o, census)
	}
	return warrants, errs
}

// warrant judges the orphan and its siblings again by the new census.
func (c *Confirmer) warrant(o Orphan, census Census) (Warrant, error) {
	if o.facts == nil {
		return Warrant{}, ErrNoWarrant
	}
	looked, err := stillOrphaned(o, census)
	if err != nil {
		return Warrant{}, err
	}
	for _, sibling := range o.group {
		at, err := stillOrphaned(sibling, census)
		if err != nil {
			return Warrant{}, fmt.Errorf("%w (of %s, with which it is released)", err, sibling.allocation.label())
		}
		if at.Before(looked) {
			looked = at
		}
	}
	return Warrant{orphan: o, confirmed: looked, renew: c.renew}, nil
}

// stillOrphaned asks the rules once more, about the same facts but for the new census.
// It returns when the owner was looked at, or what speaks against the release by now.
func stillOrphaned(o Orphan, census Census) (time.Time, error) {
	looked, err := census.looked(o.allocation.Owner.Pod)
	if err != nil {
		return time.Time{}, err
	}
	d := o.facts.again(census).decide(&o.allocation)
	switch {
	case d.Verdict == Orphaned && (d.Reason == o.reason || d.Reason == PodAbsent):
		return looked, nil
	case d.Verdict == InUse:
		return time.Time{}, fmt.Errorf("%w: now %s", ErrReturned, d.Reason)
	case d.Reason == NoCensus:
		return time.Time{}, fmt.Errorf("%w: its owner could not be looked at", ErrAgain)
	default:
		return time.Time{}, fmt.Errorf("%w: now %s", ErrKept, d.Reason)
	}
}

// Forget has the next Confirm look anew, and share no listing that was made
// before.
func (c *Confirmer) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = Census{}
}

// renew is Warrant.Renew: always a new look, of that one pod if it is known.
func (c *Confirmer) renew(ctx context.Context, o Orphan) (Warrant, error) {
	if !needsList(o) {
		return c.warrant(o, c.read(ctx, []Orphan{o}))
	}
	census, err := c.list(ctx)
	if err != nil {
		return Warrant{}, err
	}
	return c.warrant(o, census)
}

// look returns a census in which every owner was looked at just now, well
// within Freshness if that was at all possible. An entry that names no pod
// calls for all of them.
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

// shared returns a listing that is not older than shareLook; the zero Census
// where listing takes too long, unless it is needed.
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

// needsList reports whether all pods are needed to judge the orphan or a sibling of it,
// since the store names no pod.
func needsList(o Orphan) bool {
	namesNone := func(o Orphan) bool {
		return o.allocation.Owner.Pod == PodRef{} || o.allocation.Inferred
	}
	return namesNone(o) || slices.ContainsFunc(o.group, namesNone)
}

// list looks at every pod.
func (c *Confirmer) list(ctx context.Context) (Census, error) {
	began := time.Now()
	pods, err := c.cluster.Pods(ctx)
	if err != nil {
		return Census{}, fmt.Errorf("list pods: %w", again(err))
	}
	return c.census.relisted(began, pods), nil
}

// read reads the owners one by one. Each look has a time and an error of its
// own, so that a slow or failing one spoils no other.
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

// refs returns the pods that the orphans name, and what they are bound to, each
// once.
func refs(orphans []Orphan) map[PodRef]struct{} {
	set := make(map[PodRef]struct{}, len(orphans))
	for _, o := range orphans {
		set[o.allocation.Owner.Pod] = struct{}{}
		for _, tied := range o.group {
			set[tied.allocation.Owner.Pod] = struct{}{}
		}
	}
	return set
}
