package calico

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Restore implements ipam.Backend. One write puts back all addresses of a block.
// It is conditional on the block as it was just read, and the ordinals must be
// free. The handles are written right before the block, as Calico's ADD does: an
// interruption leaves a handle that counts too much, never an address without a
// handle. Restore never creates a block.
func (b *Backend) Restore(ctx context.Context, pool string, rs []ipam.Record, permit ipam.Permit) []error {
	store, err := b.datastore(ctx)
	if err == nil {
		_, err = store.ready(ctx)
	}
	if err != nil {
		return slices.Repeat([]error{err}, len(rs))
	}
	store = permitted{store, permit}
	if pool == emptyHandles {
		return each(len(rs), func(i int) error { return restoreEmptyHandle(ctx, store, rs[i]) })
	}
	return untilWritten(len(rs), func() ([]error, bool) { return restoreOnce(ctx, store, pool, rs) })
}

// permitted is a datastore that asks before each write.
type permitted struct {
	datastore
	permit ipam.Permit
}

// write implements datastore.
func (p permitted) write(ctx context.Context, objects ...object) ([]object, error) {
	if err := p.permit(); err != nil {
		return nil, err
	}
	return p.datastore.write(ctx, objects...)
}

// restoreOnce reads a block and puts back the records whose ordinals are free. It
// reports false if another writer changed the block or a handle meanwhile.
func restoreOnce(ctx context.Context, store datastore, pool string, rs []ipam.Record) ([]error, bool) {
	before, err := blockToRestore(ctx, store, pool)
	if err != nil {
		return slices.Repeat([]error{err}, len(rs)), true
	}
	errs, free := choose(store, before, rs)
	if _, err := before.restore(free); err != nil { // before a handle is raised in vain
		for _, a := range free {
			errs[a.index] = err
		}
		return errs, true
	}
	failures, ok := raiseHandles(ctx, store, before, free)
	if !ok {
		return nil, false
	}
	var back []recordedAllocation
	for _, a := range free {
		if errs[a.index] = failures[a.id()]; errs[a.index] == nil {
			back = append(back, a)
		}
	}
	if len(back) == 0 {
		return errs, true
	}
	after, err := before.restore(back)
	if err == nil {
		_, err = store.write(ctx, after.object)
		if errors.Is(err, errConflict) || errors.Is(err, errGone) {
			return nil, false
		}
		if err != nil {
			err = kube.Unsure(store.transient(fmt.Errorf("write block: %w", err)))
		}
	}
	for _, a := range back {
		errs[a.index] = err
	}
	return errs, true
}

// blockToRestore reads a block to put allocations back into.
func blockToRestore(ctx context.Context, store datastore, pool string) (block, error) {
	if _, err := netip.ParsePrefix(pool); err != nil { // a journal may have been edited
		return block{}, fmt.Errorf("%q is not the name of a block", pool)
	}
	o, err := store.get(ctx, blocks, pool)
	switch {
	case errors.Is(err, errGone):
		return block{}, fmt.Errorf("%w: block %s does not exist any more", ipam.ErrTaken, pool)
	case err != nil:
		return block{}, store.transient(fmt.Errorf("read block: %w", err))
	}
	b, err := readBlock(o)
	switch {
	case err == nil && b.cidr.String() != pool:
		err = fmt.Errorf("its cidr is %s, which is not the block of that name", b.cidr)
	case err == nil && b.deleted:
		err = fmt.Errorf("%w: Calico is deleting the block", ipam.ErrTaken)
	}
	if err != nil {
		err = fmt.Errorf("block %s cannot be written: %w", pool, err)
	}
	return b, err
}

// choose returns the records that can be put back into the block, and the answers for the
// others.
func choose(store datastore, into block, rs []ipam.Record) (errs []error, free []recordedAllocation) {
	errs = make([]error, len(rs))
	chosen := make(map[int]bool)
	for i, r := range rs {
		a, err := readRecord(store, into, r)
		a.index = i
		switch {
		case err != nil:
			errs[i] = fmt.Errorf("the record of %s cannot be restored: %w", r.IP, err)
		case into.allocations[a.ordinal] != nil:
			errs[i] = ipam.ErrPresent
			if now := into.allocation(a.ordinal); now.Token != a.token() {
				errs[i] = fmt.Errorf("%w: %s now belongs to %s", ipam.ErrTaken, now.IP, cmp.Or(now.Foreign, now.Owner.String()))
			}
		case chosen[a.ordinal]:
			errs[i] = fmt.Errorf("%w: the journal has another record of %s", ipam.ErrTaken, r.IP)
		default:
			chosen[a.ordinal] = true
			free = append(free, a)
		}
	}
	return errs, free
}
