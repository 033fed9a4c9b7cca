package calico

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// count has the handles of the entries count them: at once, or, where the block
// can be written together with them, by what it returns. It reports whether the
// block may be written. A handle that cannot be written keeps its entries from
// being put back, and no others.
func (r *restoration) count(ctx context.Context, after block, entries []int) (together []handle, ok bool) {
	total := make(map[string]int)
	for ordinal := range after.allocations {
		total[after.handleOf(ordinal)]++
	}
	first := make(map[string]int) // of the entries of a handle
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
			if err == nil && more > 0 && r.store.together() == 1 {
				_, err = r.store.write(ctx, h.object)
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				failures[id] = err
			case more > 0 && r.store.together() > 1:
				together = append(together, h)
			case more > 0:
				r.counted[id] += more
			}
			r.known.forget(id)
			return nil
		})
	}
	_ = g.Wait() // every failure is in failures
	for _, i := range entries {
		err := failures[r.allocations[i].id()]
		switch {
		case err == nil, errors.Is(err, errConflict), errors.Is(err, errGone):
			continue // with what the entry has to say anyhow
		}
		err = r.store.transient(fmt.Errorf("handle %s: %w", r.allocations[i].id(), err))
		if errors.Is(err, errUnreadable) || !errors.Is(err, reaper.ErrAgain) {
			r.decide(i, err)
			continue
		}
		r.errs[i] = err
	}
	return together, len(failures) == 0
}

// counting returns the handle of an allocation as it has to be before the block is
// written: with as many addresses in the block as it has then, or as it says
// already, if that is more. More is how many that adds. Where there was no handle,
// and is none, there will be none.
func (r *restoration) counting(ctx context.Context, after block, a allocation, total int) (h handle, more int, err error) {
	h, err = fetchHandle(ctx, r.store, a.id())
	switch {
	case errors.Is(err, errGone) && a.Handle == nil:
		return handle{}, 0, nil
	case errors.Is(err, errGone):
		h, err = a.handle.alone(after.cidr, total)
		return h, total, asUnreadable(err)
	case err != nil:
		return handle{}, 0, err
	case h.deleted:
		return handle{}, 0, fmt.Errorf("%w: Calico is deleting it", reaper.ErrAgain)
	}
	if more = total - h.counts[after.cidr]; more <= 0 {
		return h, 0, nil
	}
	h, err = h.counting(after.cidr, total)
	return h, more, asUnreadable(err)
}

// asUnreadable marks that a handle cannot be edited.
func asUnreadable(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return err
}

// countDown takes back what was counted for addresses that were given to somebody
// else in the end. What cannot be taken back, or may be there all the same, is left
// to a run that finds handles without an address.
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
	_ = r.settle(ctx, r.before.cidr, changes)
}
