package reaper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// All looks of a batch together end before the first of them is as old as Freshness. The
// rest of the time is for the write.
const (
	maxRead     = Freshness / 2     // how long the reads of a batch may take together
	maxList     = Freshness * 3 / 4 // how long a list may take
	shareLook   = Freshness / 2     // how long a list is shared
	readsAtOnce = 16
)

// errSlow says that the API server took too long. What was read too late could not be
// released, and the other looks of the batch would become too old.
var errSlow = errors.New("the second look took too long")

// A listing is a list of all pods, under way or done.
type listing struct {
	began  time.Time
	done   chan struct{} // closed when the list is done
	census Census
	err    error
}

// A result is a second look at several owners, or the error of all of them.
type result struct {
	second *secondLook
	err    error
}

// look looks at every owner. The first result is for the orphans that need a list of all
// pods, the second one for the others.
func (c *Confirmer) look(ctx context.Context, orphans []Orphan) (list, read result) {
	if c.prefersList() {
		census, err := c.shared(ctx)
		if err == nil {
			list.second = newSecondLook(census)
			return list, list
		}
		list.err = err
		read.second = newSecondLook(c.census.with(c.read(ctx, orphans)))
		return list, read
	}
	census, needed := c.census, slices.ContainsFunc(orphans, needsList)
	var wg sync.WaitGroup
	if list.err = ErrAgain; needed {
		wg.Go(func() {
			var listed Census
			if listed, list.err = c.shared(ctx); list.err == nil {
				census, list.second = listed, newSecondLook(listed)
			}
		})
	}
	fresh := c.read(ctx, orphans)
	wg.Wait()
	read.second = newSecondLook(census.with(fresh))
	return list, read
}

// needsList reports whether the rules need a list of all pods: the store does not name
// the pod of the orphan, or that of a sibling, or a list of sandboxes decides.
func needsList(o Orphan) bool {
	namesNone := func(o Orphan) bool {
		a := o.Allocation()
		return a.Owner.Pod == PodRef{} || a.Inferred || a.ByRuntime
	}
	return namesNone(o) || slices.ContainsFunc(o.group, namesNone)
}

// prefersList reports whether a list is cheaper than single reads, and was fast so far.
func (c *Confirmer) prefersList() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bulk && !c.slow
}

// shared returns a list of all pods whose reading began no longer than shareLook ago. If
// another caller is reading one, shared waits for that one. It also shares failures.
func (c *Confirmer) shared(ctx context.Context) (Census, error) {
	c.mu.Lock()
	if l := c.last; l != nil && time.Since(l.began) <= shareLook {
		c.mu.Unlock()
		select {
		case <-l.done:
			return l.census, l.err
		case <-ctx.Done():
			return Census{}, fmt.Errorf("list pods: %w", again(ctx.Err()))
		}
	}
	l := &listing{began: time.Now(), done: make(chan struct{})}
	c.last = l
	c.mu.Unlock()

	l.census, l.err = c.list(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow = c.slow || l.err != nil || time.Since(l.began) > shareLook
	close(l.done)
	return l.census, l.err
}

// list lists all pods, and on a node all sandboxes. It gives up after maxList, and believes no
// list that is empty since the census.
func (c *Confirmer) list(ctx context.Context) (Census, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxList, errSlow)
	defer cancel()
	began := time.Now()
	pods, err := c.cluster.Pods(ctx)
	if err != nil {
		err = fmt.Errorf("list pods: %w", lookError(ctx, err))
		if c.pods != nil {
			err = c.pods.explain(err)
		}
		return Census{}, err
	}
	sandboxes, err := sandboxesOf(ctx, c.cluster)
	if err != nil {
		return Census{}, lookError(ctx, err)
	}
	return c.census.relisted(began, pods, sandboxes), c.census.emptied(len(pods), len(sandboxes.ids))
}

// read reads the owners of the orphans that need no list, one by one. Each look has its
// own time and its own error, so a slow or failed one does not affect the others. The
// looks that are not done after maxRead are given up.
func (c *Confirmer) read(ctx context.Context, orphans []Orphan) map[PodRef]reading {
	ctx, cancel := context.WithTimeoutCause(ctx, maxRead, errSlow)
	defer cancel()
	fresh := make(map[PodRef]reading)
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(readsAtOnce)
	for ref := range refs(orphans) {
		g.Go(func() error {
			l := reading{began: time.Now(), err: ctx.Err()}
			if l.err == nil {
				l.pod, l.presence, l.err = c.cluster.Pod(ctx, ref)
			}
			if l.err != nil {
				l.presence, l.err = Unknown, fmt.Errorf("get pod %s: %w", ref, lookError(ctx, l.err))
			}
			mu.Lock()
			defer mu.Unlock()
			fresh[ref] = l
			return nil
		})
	}
	_ = g.Wait() // every failure is in its look
	return fresh
}

// lookError returns the error of a look under a context. It wraps ErrAgain if a later
// look may succeed.
func lookError(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSlow) {
		err = fmt.Errorf("%w: %w", errSlow, err)
	}
	return again(err)
}

// refs returns the pods that the orphans and their siblings name, but for orphans that
// need a list.
func refs(orphans []Orphan) map[PodRef]struct{} {
	set := make(map[PodRef]struct{}, len(orphans))
	for _, o := range orphans {
		if needsList(o) {
			continue
		}
		set[o.Allocation().Owner.Pod] = struct{}{}
		for _, sibling := range o.group {
			set[sibling.Allocation().Owner.Pod] = struct{}{}
		}
	}
	return set
}
