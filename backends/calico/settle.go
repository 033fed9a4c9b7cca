package calico

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Handles are written a few at a time, and to the end: what was begun by the
// write of a block is not given up when the run is interrupted.
const (
	handlesAtOnce = 8
	settleTimeout = 15 * time.Second
	handleTries   = 20
)

// A change is what the release of some addresses means for their handle.
type change struct {
	id    string
	freed int  // addresses that go
	left  int  // addresses that stay in the block
	known bool // after is made of a version that is older than the block's write
	after handle
}

// changes returns what has to become of the handles of the entries. Handles that
// do not exist have none.
//
// A handle may count more than there is. The version of it that was read before
// the block is written can be put right: whoever allocates in this block counts
// in the handle first and then writes the block, and is refused there if we write
// the block in between; if not, there is another version of the handle by then.
func (r *release) changes(ctx context.Context, before, after block, entries []entry) ([]change, error) {
	byID := make(map[string]change)
	for _, e := range entries {
		if id := before.handleOf(e.ordinal); id != "" {
			c := byID[id]
			c.id = id
			c.freed++
			byID[id] = c
		}
	}
	for ordinal := range after.allocations {
		if c, ok := byID[after.handleOf(ordinal)]; ok {
			c.left++
			byID[c.id] = c
		}
	}
	var all []change
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		c := byID[id]
		h, ok := r.known.find(id)
		if !ok && r.store.together() > 1 || ok && h.raw == nil && c.left > 0 {
			var err error
			if h, err = fetchHandle(ctx, r.store, id); errors.Is(err, errGone) {
				continue
			} else if err != nil {
				return nil, unread(r.store, err)
			}
			r.known.note(h) // the next attempt has no time to read them all again
			ok = true
		}
		if ok {
			if _, counted := h.counts[before.cidr]; !counted || h.deleted {
				continue
			}
			var err error
			if c.after, err = h.without(before.cidr, h.counts[before.cidr]-c.left); err != nil {
				return nil, fmt.Errorf("%w: %w", reaper.ErrKept, err)
			}
			c.known = true
		}
		all = append(all, c)
	}
	return all, nil
}

// handleOf returns the handle of an ordinal; empty where there is none.
func (b block) handleOf(ordinal int) string {
	index := b.allocations[ordinal]
	if index == nil {
		return ""
	}
	return b.readable[*index].handle()
}

// fetchHandle reads a handle now. It returns errGone where there is none.
func fetchHandle(ctx context.Context, store datastore, id string) (handle, error) {
	o, err := store.get(ctx, handles, id)
	if err != nil {
		return handle{}, err
	}
	h, err := readHandle(o)
	if err != nil {
		return handle{}, fmt.Errorf("%w: handle %s: %w", errUnreadable, id, err)
	}
	if h.id != id {
		return handle{}, errGone // another one, whose name differs in case only
	}
	return h, nil
}

var errUnreadable = errors.New("it cannot be edited")

// unread is the answer where a handle could not be read.
func unread(store datastore, err error) error {
	if errors.Is(err, errUnreadable) {
		return fmt.Errorf("%w: %w", reaper.ErrKept, err)
	}
	return store.transient(err)
}

// settle writes the handles after their block. It returns an error that wraps
// reaper.ErrUnfinished where one could not be written.
func (t *task) settle(ctx context.Context, cidr netip.Prefix, changes []change) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(handlesAtOnce)
	for _, c := range changes {
		g.Go(func() error {
			if err := t.settleOne(ctx, cidr, c); err != nil {
				return fmt.Errorf("%w: handle %s: %w", reaper.ErrUnfinished, c.id, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// settleOne writes one handle, again and again while others do so too.
func (t *task) settleOne(ctx context.Context, cidr netip.Prefix, c change) error {
	for try := 0; ; try++ {
		err := t.count(ctx, cidr, c)
		if err == nil || errors.Is(err, errGone) {
			return nil
		}
		again := errors.Is(err, errConflict) || errors.Is(t.store.transient(err), reaper.ErrAgain)
		if errors.Is(err, errUnreadable) || !again || try == handleTries {
			return err
		}
		c.known = false
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// count writes into a handle what was released of it, once.
func (t *task) count(ctx context.Context, cidr netip.Prefix, c change) error {
	if !c.known {
		h, err := fetchHandle(ctx, t.store, c.id)
		if err != nil {
			return err
		}
		// It never counts fewer than stay: our own write may be in it already,
		// if only the answer was lost.
		n, counted := h.counts[cidr]
		if !counted || h.deleted || c.left > 0 && n <= c.left {
			return nil
		}
		if c.after, err = h.without(cidr, min(c.freed, n-c.left)); err != nil {
			return fmt.Errorf("%w: %w", errUnreadable, err)
		}
	}
	written, err := t.store.write(ctx, c.after.object)
	if err == nil && c.known {
		c.after.object = written[0]
		t.known.note(c.after)
		return nil
	}
	t.known.forget(c.id)
	return err
}

// releaseLeftovers deletes handles that have no address, if they are what was
// listed.
func (b *Backend) releaseEmptyHandles(ctx context.Context, store datastore, ws []reaper.Warrant, errs []error) {
	var g errgroup.Group
	g.SetLimit(handlesAtOnce)
	for i, w := range ws {
		g.Go(func() error {
			errs[i] = b.releaseEmptyHandle(ctx, store, w)
			return nil
		})
	}
	_ = g.Wait() // every failure is in errs
}

func (b *Backend) releaseEmptyHandle(ctx context.Context, store datastore, w reaper.Warrant) error {
	res, err := w.Allocation()
	if err != nil {
		return err
	}
	h, ok := b.known.find(res.Key)
	if !ok {
		if h, err = fetchHandle(ctx, store, res.Key); errors.Is(err, errGone) {
			return nil
		} else if err != nil {
			return unread(store, err)
		}
		if _, err = w.Allocation(); err != nil {
			return err
		}
	}
	if h.token() != res.Token {
		return reaper.ErrChanged
	}
	h.raw = nil
	_, err = store.write(ctx, h.object)
	b.known.forget(res.Key)
	switch {
	case errors.Is(err, errConflict):
		if _, err := fetchHandle(ctx, store, res.Key); errors.Is(err, errGone) {
			return nil // etcd does not tell them apart
		}
		return fmt.Errorf("%w: somebody wrote the handle", reaper.ErrChanged)
	case errors.Is(err, errGone):
		return nil
	}
	return store.transient(err)
}
