package calico

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

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
	errs := make([]error, len(ids))
	each(len(ids), func(i int) { errs[i] = raiseHandle(ctx, store, into.cidr, first[ids[i]], total[ids[i]]) })
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
