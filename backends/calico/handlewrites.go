package calico

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A change is the effect of a release on one handle.
type change struct {
	id    string
	freed int  // how many addresses are released
	left  int  // how many addresses stay in the block
	known bool // after is an edit of a version that was read before the block's write
	after handle
}

// changes returns the changes to the handles of the entries. A handle that does not
// exist has none.
//
// A handle may count more addresses than the block has. If its version was read
// before the block is written, its count can be corrected. An ADD in this block
// writes the handle first and then the block. If we write the block in between, the
// ADD's write of the block is refused. If we do not, the handle has another version
// by then, and our write of the handle is refused.
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
		if !ok && r.store.objectsPerWrite() > 1 {
			var err error
			if h, err = fetchHandle(ctx, r.store, id); errors.Is(err, errGone) {
				continue
			} else if err != nil {
				return nil, readFailed(r.store, err)
			}
			r.known.store(h) // the warrants would expire if the next attempt read all handles again
			ok = true
		}
		if ok {
			if _, counted := h.counts[before.cidr]; !counted || h.deleted {
				continue
			}
			var err error
			if c.after, err = h.withCount(before.cidr, c.left); err != nil {
				return nil, fmt.Errorf("%w: %w", ipam.ErrKept, err)
			}
			c.known = true
		}
		all = append(all, c)
	}
	return all, nil
}

// writeHandles writes the handles after their block. It returns an error that wraps
// ipam.ErrUnfinished if one could not be written.
func (t *task) writeHandles(ctx context.Context, cidr netip.Prefix, changes []change) error {
	ctx, progress, stop := outlive(ctx, handleTimeout)
	defer stop()
	errs := make([]error, len(changes))
	each(len(changes), func(i int) {
		defer progress()
		err := t.writeHandle(ctx, cidr, changes[i])
		if err == nil {
			return
		}
		if slow := context.Cause(ctx); slow != nil {
			err = fmt.Errorf("%w: %w", slow, err)
		}
		errs[i] = fmt.Errorf("%w: handle %s: %w", ipam.ErrUnfinished, changes[i].id, err)
	})
	return cmp.Or(errs...)
}

// outlive returns a context for work that goes on after an interruption. It ends when
// there was no progress for the given time, and at the latest the given time after the
// interruption. The caller calls stop in the end.
func outlive(ctx context.Context, most time.Duration) (later context.Context, progress, stop func()) {
	forever := ipam.SendBy(context.WithoutCancel(ctx), time.Time{}) // no warrant is needed any more
	later, cancel := context.WithCancelCause(forever)
	slow := func() { cancel(fmt.Errorf("given up after %v", most)) }
	idle := time.AfterFunc(most, slow)
	interrupted := context.AfterFunc(ctx, func() { time.AfterFunc(most, slow) })
	return later, func() { idle.Reset(most) }, func() {
		interrupted()
		idle.Stop()
		cancel(nil)
	}
}

// writeHandle writes one handle. It tries again while other writers change it.
func (t *task) writeHandle(ctx context.Context, cidr netip.Prefix, c change) error {
	for try := 0; ; try++ {
		err := t.count(ctx, cidr, c)
		if err == nil || errors.Is(err, errGone) {
			return nil
		}
		again := errors.Is(err, errConflict) || errors.Is(t.store.transient(err), ipam.ErrAgain)
		if errors.Is(err, errUnreadable) || !again || try == handleTries {
			return err
		}
		c.known = false
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// count lowers a handle's count by the released addresses, once.
func (t *task) count(ctx context.Context, cidr netip.Prefix, c change) error {
	if !c.known {
		h, err := fetchHandle(ctx, t.store, c.id)
		if err != nil {
			return err
		}
		// The count never goes below the addresses that stay: if the answer to an
		// earlier write was lost, the count may be lowered already.
		n, counted := h.counts[cidr]
		if !counted || h.deleted || c.left > 0 && n <= c.left {
			return nil
		}
		if c.after, err = h.withCount(cidr, max(n-c.freed, c.left)); err != nil {
			return fmt.Errorf("%w: %w", errUnreadable, err)
		}
	}
	written, err := t.store.write(ctx, c.after.object)
	if err == nil && c.known {
		c.after.object = written[0]
		t.known.store(c.after)
		return nil
	}
	t.known.forget(c.id)
	return err
}
