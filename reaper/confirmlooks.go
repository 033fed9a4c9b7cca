package reaper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// readsAtOnce is how many owners of a batch are read at the same time.
const readsAtOnce = 16

// All looks of a batch end before the first of them is as old as it may be. The rest of the time
// is for the write.
func maxRead(fresh time.Duration) time.Duration   { return fresh / 2 }     // for the reads of a batch together
func maxList(fresh time.Duration) time.Duration   { return fresh * 3 / 4 } // for a list
func shareList(fresh time.Duration) time.Duration { return fresh / 2 }     // while a list is shared

// errSlow says that the API server took too long. What was read too late could not be
// released, and the other looks of the batch would become too old.
var errSlow = errors.New("the second look took too long")

// lists are the lists of all pods for looks that may be equally old.
type lists struct {
	last *listing // the latest; nil if there is none to share
	slow int      // how many took too long
}

// A listing is a list of all pods, under way or done.
type listing struct {
	began  time.Time
	done   chan struct{} // closed when the list is done
	census census.Census
	err    error
}

// A result is a second look at several owners, or the error for all of them.
type result struct {
	second *judge.SecondLook
	err    error
}

// look looks at every owner. The first result is for the orphans that need a list of all
// pods, the second one for the others.
func (c *Confirmer) look(ctx context.Context, orphans []judge.Orphan) (list, read result) {
	fresh := judge.FreshnessOf(orphans)
	if c.prefersList(fresh) {
		census, err := c.shared(ctx, fresh)
		if err == nil {
			list.second = judge.NewSecondLook(census)
			return list, list
		}
		list.err = err
		read.second = judge.NewSecondLook(c.census.With(c.read(ctx, fresh, orphans)))
		return list, read
	}
	living, needed := c.census, slices.ContainsFunc(orphans, judge.Orphan.NeedsList)
	var wg sync.WaitGroup
	if list.err = ipam.ErrAgain; needed {
		wg.Go(func() {
			var listed census.Census
			if listed, list.err = c.shared(ctx, fresh); list.err == nil {
				living, list.second = listed, judge.NewSecondLook(listed)
			}
		})
	}
	looks := c.read(ctx, fresh, orphans)
	wg.Wait()
	read.second = judge.NewSecondLook(living.With(looks))
	return list, read
}

// prefersList reports whether a list is cheaper than single reads, and was fast enough so far.
func (c *Confirmer) prefersList(fresh time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bulk && c.took <= shareList(fresh)
}

// shared returns a list of all pods that is young enough. If another caller is reading one for
// looks of the same age, shared waits for that one. It also shares failures. If too many lists
// were slow, it reads no more.
func (c *Confirmer) shared(ctx context.Context, fresh time.Duration) (census.Census, error) {
	c.mu.Lock()
	of := c.lists[fresh]
	if of.slow >= slowLists {
		c.mu.Unlock()
		return census.Census{}, fmt.Errorf("list pods: %w", ipam.Again(errSlow))
	}
	if l := of.last; l != nil && time.Since(l.began) <= shareList(fresh) {
		c.mu.Unlock()
		select {
		case <-l.done:
			return l.census, l.err
		case <-ctx.Done():
			return census.Census{}, fmt.Errorf("list pods: %w", ipam.Again(ctx.Err()))
		}
	}
	l := &listing{began: time.Now(), done: make(chan struct{})}
	of.last = l
	c.mu.Unlock()

	l.census, l.err = c.list(ctx, maxList(fresh))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = max(c.took, time.Since(l.began))
	switch {
	case errors.Is(l.err, errSlow):
		of.slow++
	case l.err != nil:
		c.took = math.MaxInt64
	}
	close(l.done)
	return l.census, l.err
}

// list lists all pods, and on a node all sandboxes. It gives up after most, and does not
// believe a list that has become empty since the census.
func (c *Confirmer) list(ctx context.Context, most time.Duration) (census.Census, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, most, errSlow)
	defer cancel()
	living, err := c.census.Again(ctx, c.cluster)
	if err != nil {
		return census.Census{}, lookError(ctx, err)
	}
	return living, nil
}

// read reads the owners of the orphans that need no list, one by one. Each look has its
// own time and its own error, so a slow or failed one does not affect the others. The
// looks that are not done in time are given up.
func (c *Confirmer) read(ctx context.Context, fresh time.Duration, orphans []judge.Orphan) map[ipam.PodRef]census.Reading {
	ctx, cancel := context.WithTimeoutCause(ctx, maxRead(fresh), errSlow)
	defer cancel()
	looks := make(map[ipam.PodRef]census.Reading)
	var mu sync.Mutex
	var g errgroup.Group
	g.SetLimit(readsAtOnce)
	for ref := range judge.Owners(orphans) {
		g.Go(func() error {
			l := census.Reading{Began: time.Now(), Err: ctx.Err()}
			if l.Err == nil {
				l.Pod, l.Presence, l.Err = c.cluster.Pod(ctx, ref)
			}
			if l.Err != nil {
				l.Presence, l.Err = census.Unknown, fmt.Errorf("get pod %s: %w", ref, lookError(ctx, l.Err))
			}
			mu.Lock()
			defer mu.Unlock()
			looks[ref] = l
			return nil
		})
	}
	_ = g.Wait() // every failure is in its look
	return looks
}

// lookError returns the error of a look under a context. It wraps ErrAgain if a later
// look may succeed.
func lookError(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSlow) {
		err = fmt.Errorf("%w: %w", errSlow, err)
	}
	return ipam.Again(err)
}
