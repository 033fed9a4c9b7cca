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

	"github.com/sethvargo/go-retry"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The limits on the write of a handle: how long it may take, and how often it is retried. An
// interrupted run still writes the handles of its written blocks, for at most ipam.Ending.
const (
	handleTimeout  = 15 * time.Second
	handleTries    = 20
	maxHandlePause = 250 * time.Millisecond
)

// A change is the effect of a release on one handle.
type change struct {
	id    string
	block netip.Prefix
	freed int // how many of its addresses are released from the block
	left  int // how many stay in the block
}

// changes returns the changes to the handles of the released ordinals.
func (b block) changes(after block, ordinals []int) []change {
	byID := make(map[string]change)
	for _, ordinal := range ordinals {
		if id := b.handleOf(ordinal); id != "" {
			byID[id] = change{id: id, block: b.cidr, freed: byID[id].freed + 1}
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
		all = append(all, byID[id])
	}
	return all
}

// lower returns the handle without the released addresses, and reports false if it need not be
// written. The count never goes below the addresses that stay: if the answer to an earlier write
// was lost, it may have been lowered.
func (c change) lower(h handle) (after handle, ok bool, err error) {
	n, counted := h.counts[c.block]
	if !counted || h.deleted || c.left > 0 && n <= c.left {
		return h, false, nil
	}
	after, err = h.withCount(c.block, max(n-c.freed, c.left))
	return after, true, err
}

// writeHandles writes handles after their block. It returns an error that wraps
// ipam.ErrUnfinished if one could not be written.
func (b *Backend) writeHandles(ctx context.Context, store datastore, changes []change) error {
	// The block is written, so no warrant is needed any more.
	later, cancel := context.WithCancel(ipam.SendBy(context.WithoutCancel(ctx), time.Time{}, nil))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(ipam.Ending, cancel) })()
	errs := each(len(changes), func(i int) error {
		timed, cancel := context.WithTimeout(later, handleTimeout)
		defer cancel()
		if err := b.writeHandle(timed, store, changes[i]); err != nil {
			return fmt.Errorf("%w: handle %s: %w", ipam.ErrUnfinished, changes[i].id, err)
		}
		return nil
	})
	return cmp.Or(errs...)
}

// writeHandle writes one handle. It retries conflicts and temporary failures.
func (b *Backend) writeHandle(ctx context.Context, store datastore, c change) error {
	backoff := retry.WithCappedDuration(maxHandlePause, retry.NewFibonacci(10*time.Millisecond))
	return retry.Do(ctx, retry.WithMaxRetries(handleTries, backoff), func(ctx context.Context) error {
		err := b.lowerHandle(ctx, store, c)
		switch {
		case errors.Is(err, errGone):
			return nil
		case errors.Is(err, errUnreadable):
			return err
		case errors.Is(err, errConflict), errors.Is(store.transient(err), ipam.ErrAgain):
			return retry.RetryableError(err)
		}
		return err
	})
}

// lowerHandle lowers the count of a handle in its cached version. It reads the handle if none is
// cached, or if that one would not change: an ADD may have raised it since.
func (b *Backend) lowerHandle(ctx context.Context, store datastore, c change) error {
	h, cached := b.known.find(c.id)
	lowered, needed, err := c.lower(h)
	if !cached || !needed {
		if h, err = fetchHandle(ctx, store, c.id); err != nil {
			return err
		}
		lowered, needed, err = c.lower(h)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errUnreadable, err)
	case !needed:
		return nil
	}
	written, err := store.write(ctx, lowered.object)
	if err != nil {
		b.known.forget(c.id)
		return err
	}
	lowered.object = written[0]
	b.known.store(lowered)
	return nil
}

// raiseHandles raises the counts of the handles of records, which must happen before the block is
// written. It returns an error for each handle that cannot be written: only that handle's records
// are not put back. It reports false if another writer changed one meanwhile. A handle raised in
// vain is left to the next restore, or to a later run.
func raiseHandles(ctx context.Context, store datastore, into block, records []recordedAllocation) (failures map[string]error, ok bool) {
	total := make(map[string]int)
	for ordinal := range into.allocations {
		total[into.handleOf(ordinal)]++
	}
	first := make(map[string]recordedAllocation) // one with a recorded handle, if any
	for _, a := range records {
		total[a.id()]++
		if was, ok := first[a.id()]; !ok || was.Handle == nil {
			first[a.id()] = a
		}
	}
	delete(first, "")
	ids := slices.Collect(maps.Keys(first))
	errs := each(len(ids), func(i int) error { return raiseHandle(ctx, store, into.cidr, first[ids[i]], total[ids[i]]) })
	failures = make(map[string]error)
	for i, err := range errs {
		switch {
		case errors.Is(err, errConflict), errors.Is(err, errGone):
			return nil, false
		case err != nil:
			failures[ids[i]] = store.transient(fmt.Errorf("handle %s: %w", ids[i], err))
		}
	}
	return failures, true
}

// raiseHandle makes an allocation's handle count total addresses in the block, unless it counts as
// many already. If the handle is gone, it is created from the record; without a recorded handle,
// none is created.
func raiseHandle(ctx context.Context, store datastore, cidr netip.Prefix, a recordedAllocation, total int) error {
	h, err := fetchHandle(ctx, store, a.id())
	switch {
	case errors.Is(err, errGone) && a.Handle == nil:
		return nil
	case errors.Is(err, errGone):
		h, err = a.handle.onlyIn(cidr, total)
	case err != nil:
		return err
	case h.deleted:
		return fmt.Errorf("%w: Calico is deleting the handle", ipam.ErrAgain)
	case h.deleting != nil:
		return fmt.Errorf("%w: restore it once it is gone", h.deleting)
	case total <= h.counts[cidr]:
		return nil
	default:
		h, err = h.withCount(cidr, total)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	_, err = store.write(ctx, h.object)
	return err
}
