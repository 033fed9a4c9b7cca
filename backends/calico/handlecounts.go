package calico

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// count raises the counts of the handles for the entries, which must happen before
// the block is written. If the datastore writes one object at a time, count writes
// the handles. Otherwise it returns them, to be written with the block. It reports
// whether the block may be written. If a handle cannot be written, only its own
// entries are not put back. A handle that was raised for nothing is left to the next
// restore, or to a later run.
func (r *restoration) count(ctx context.Context, after block, entries []int) (together []object, ok bool) {
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
	ids := slices.Collect(maps.Keys(first))
	failures := make(map[string]error)
	var mu sync.Mutex
	each(len(ids), func(n int) {
		id := ids[n]
		h, raised, err := r.counting(ctx, after, r.allocations[first[id]], total[id])
		if err == nil && raised && r.store.objectsPerWrite() == 1 {
			_, err = r.store.write(ctx, h.object)
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			failures[id] = err
		case raised && r.store.objectsPerWrite() > 1:
			together = append(together, h.object)
		}
	})
	for _, i := range entries {
		id := r.allocations[i].id()
		if err := failures[id]; err != nil && !errors.Is(err, errConflict) && !errors.Is(err, errGone) {
			r.decide(i, r.store.transient(fmt.Errorf("handle %s: %w", id, err)))
		}
	}
	return together, len(failures) == 0
}

// counting returns the handle of an allocation as it must be before the block is
// written, and whether that differs from what is stored. It counts as many addresses
// in the block as the block will have, or as it counts already, if that is more. If the
// handle is gone, it is created from the record; without a recorded handle, none is
// created.
func (r *restoration) counting(ctx context.Context, after block, a recordedAllocation, total int) (h handle, raised bool, err error) {
	h, err = fetchHandle(ctx, r.store, a.id())
	switch {
	case errors.Is(err, errGone) && a.Handle == nil:
		return handle{}, false, nil
	case errors.Is(err, errGone):
		h, err = a.handle.onlyIn(after.cidr, total)
		return h, true, asUnreadable(err)
	case err != nil:
		return handle{}, false, err
	case h.deleted:
		return handle{}, false, fmt.Errorf("%w: Calico is deleting the handle", ipam.ErrAgain)
	case total <= h.counts[after.cidr]:
		return h, false, nil
	}
	h, err = h.withCount(after.cidr, total)
	return h, true, asUnreadable(err)
}

// asUnreadable marks the error of a handle that cannot be edited.
func asUnreadable(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return err
}
