package calico

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// count raises the counts of the handles for the entries, which must happen before
// the block is written. If the datastore writes one object at a time, count writes
// the handles. Otherwise it returns them, to be written with the block. It reports
// whether the block may be written. If a handle cannot be written, only its own
// entries are not put back.
func (r *restoration) count(ctx context.Context, after block, entries []int) (together []handle, ok bool) {
	var mu sync.Mutex
	ok = r.countEach(ctx, after, entries, func(h handle, more int) error {
		alone := r.store.objectsPerWrite() == 1
		if alone {
			if _, err := r.store.write(ctx, h.object); err != nil {
				return err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if alone {
			r.counted[h.id] += more
		} else {
			together = append(together, h)
		}
		return nil
	})
	return together, ok
}

// countEach reads the handles of the entries, and calls raise for each one whose count
// rises. It reports whether all is well. If a handle is not, its entries are decided, or
// stay pending with the error. It writes nothing by itself.
func (r *restoration) countEach(ctx context.Context, after block, entries []int, raise func(h handle, more int) error) bool {
	total := make(map[string]int)
	for ordinal := range after.allocations {
		total[after.handleOf(ordinal)]++
	}
	first := make(map[string]int) // by handle: the entry to take a handle from, one with a recorded handle if any
	for _, i := range entries {
		id := r.allocations[i].id()
		if was, ok := first[id]; !ok || r.allocations[was].Handle == nil {
			first[id] = i
		}
	}
	delete(first, "")
	var g errgroup.Group
	var mu sync.Mutex
	failures := make(map[string]error)
	g.SetLimit(handlesAtOnce)
	for id, i := range first {
		g.Go(func() error {
			h, more, err := r.counting(ctx, after, r.allocations[i], total[id])
			if err == nil && more > 0 {
				err = raise(h, more)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures[id] = err
			}
			r.known.forget(id)
			return nil
		})
	}
	_ = g.Wait() // failures has the errors
	for _, i := range entries {
		err := failures[r.allocations[i].id()]
		switch {
		case err == nil, errors.Is(err, errConflict), errors.Is(err, errGone):
			continue // the entry already has the answer of a conflict
		}
		err = r.store.transient(fmt.Errorf("handle %s: %w", r.allocations[i].id(), err))
		if errors.Is(err, errUnreadable) || !errors.Is(err, reaper.ErrAgain) {
			r.decide(i, err)
			continue
		}
		r.errs[i] = err
	}
	return len(failures) == 0
}

// counting returns the handle of an allocation as it must be before the block is
// written, and how many addresses that adds. It counts as many addresses in the
// block as the block will have, or as it counts already, if that is more. If the
// handle is gone, it is created from the record; without a recorded handle, none is
// created.
func (r *restoration) counting(ctx context.Context, after block, a recordedAllocation, total int) (h handle, more int, err error) {
	h, err = fetchHandle(ctx, r.store, a.id())
	switch {
	case errors.Is(err, errGone) && a.Handle == nil:
		return handle{}, 0, nil
	case errors.Is(err, errGone):
		h, err = a.handle.onlyIn(after.cidr, total)
		return h, total, asUnreadable(err)
	case err != nil:
		return handle{}, 0, err
	case h.deleted:
		return handle{}, 0, fmt.Errorf("%w: Calico is deleting the handle", reaper.ErrAgain)
	}
	if more = total - h.counts[after.cidr]; more <= 0 {
		return h, 0, nil
	}
	h, err = h.withCount(after.cidr, total)
	return h, more, asUnreadable(err)
}

// asUnreadable marks the error of a handle that cannot be edited.
func asUnreadable(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return err
}

// countDown lowers the counts again for addresses that were not put back in the
// end. If the outcome of a write is unknown, it lowers nothing. Counts that stay
// too high are left to a later run, which finds handles without an address.
func (r *restoration) countDown(ctx context.Context) {
	if len(r.uncertain) > 0 {
		return
	}
	var changes []change
	for id, more := range r.counted {
		if more <= 0 {
			continue
		}
		c := change{id: id, freed: more}
		for ordinal := range r.before.allocations {
			if r.before.handleOf(ordinal) == id {
				c.left++
			}
		}
		changes = append(changes, c)
	}
	_ = r.writeHandles(ctx, r.before.cidr, changes)
}
