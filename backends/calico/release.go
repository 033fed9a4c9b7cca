package calico

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Release implements ipam.Backend. Blocks are released at the same time, all
// addresses of one in one write. It is conditional on the block as it was just
// read, and each allocation must be as listed. As many handles as the datastore
// takes are written in the same transaction, the others right after the block. A
// handle is never written before its block: the plugin could not free an address
// without a handle, while a handle without addresses does no harm.
func (b *Backend) Release(ctx context.Context, ws []ipam.Warrant) []error {
	store, err := b.datastore(ctx)
	if err != nil {
		return slices.Repeat([]error{err}, len(ws))
	}
	one := func(string) int64 { return 1 }
	return ipam.EachPool(ctx, ws, b.room, one, func(pool string, ws []ipam.Warrant) []error {
		if pool == emptyHandles {
			return each(len(ws), func(i int) error { return releaseEmptyHandle(ctx, store, ws[i]) })
		}
		return untilWritten(len(ws), func() ([]error, bool) { return b.releaseOnce(ctx, store, pool, ws) })
	})
}

// releaseOnce reads a block and releases the allocations that are still as listed. It reports false
// if another writer changed the block or a handle meanwhile.
func (b *Backend) releaseOnce(ctx context.Context, store datastore, pool string, ws []ipam.Warrant) ([]error, bool) {
	all := func(err error) ([]error, bool) { return slices.Repeat([]error{err}, len(ws)), true }
	o, err := store.get(ctx, blocks, pool)
	switch {
	case errors.Is(err, errGone):
		return all(nil)
	case err != nil:
		return all(store.transient(fmt.Errorf("read block: %w", err)))
	}
	before, err := readBlock(o)
	if err == nil && before.deleted {
		err = errors.New("its deleted field is set: Calico is deleting it")
	}
	if err != nil {
		return all(fmt.Errorf("%w: block %s cannot be written: %w", ipam.ErrKept, pool, err))
	}
	errs := make([]error, len(ws))
	var released, ordinals []int // the indices of warrants, and the ordinals that they release
	for i, w := range ws {
		ordinal := -1
		a, err := w.Allocation()
		if err == nil {
			ordinal, err = before.find(a)
		}
		if errs[i] = err; ordinal >= 0 {
			released, ordinals = append(released, i), append(ordinals, ordinal)
		}
	}
	if len(ordinals) == 0 {
		return errs, true
	}
	slices.Sort(ordinals)
	ok, err := b.writeRelease(ctx, store, before, ordinals)
	for _, i := range released {
		errs[i] = err
	}
	return errs, ok
}

// writeRelease stores the block without the ordinals, and their handles. It reports
// false if another writer was first, and returns the answer for all of them.
func (b *Backend) writeRelease(ctx context.Context, store datastore, before block, ordinals []int) (ok bool, answer error) {
	after, err := before.release(ordinals)
	if err != nil {
		return true, fmt.Errorf("%w: %w", ipam.ErrKept, err)
	}
	objects := []object{after.object}
	var together []handle
	var later []change
	for _, c := range before.changes(after, ordinals) {
		h, ok := b.known.find(c.id)
		lowered, needed, err := c.lower(h)
		switch {
		case err != nil:
			return true, fmt.Errorf("%w: %w", ipam.ErrKept, err)
		case ok && needed && len(objects) < store.objectsPerWrite():
			objects, together = append(objects, lowered.object), append(together, lowered)
		default:
			later = append(later, c)
		}
	}
	written, err := store.write(ctx, objects...)
	switch {
	case errors.Is(err, errConflict):
		for _, h := range together { // one of these may be the conflict
			b.known.forget(h.id)
		}
		return false, nil
	case errors.Is(err, errGone):
		return true, nil
	case err != nil:
		return true, kube.Unsure(store.transient(fmt.Errorf("write block: %w", err)))
	}
	for i, h := range together {
		h.object = written[i+1]
		b.known.store(h)
	}
	return true, b.writeHandles(ctx, store, later)
}

// maxConflicts is how often one call tries a block that other writers keep changing. The
// warrants usually expire first.
const maxConflicts = 20

// handlesAtOnce is how many handles of one block are read or written at a time.
const handlesAtOnce = 8

// untilWritten repeats an attempt to write a block until it meets no conflict, and returns
// its n answers. An attempt reports false if another writer was first: then it has decided
// nothing.
func untilWritten(n int, attempt func() (errs []error, ok bool)) []error {
	for range maxConflicts {
		if errs, ok := attempt(); ok {
			return errs
		}
	}
	return slices.Repeat([]error{fmt.Errorf("%w: other writers keep changing the block", ipam.ErrAgain)}, n)
}

// each calls do for every number below n, a few at a time, and returns its errors in order.
func each(n int, do func(i int) error) []error {
	errs := make([]error, n)
	var g errgroup.Group
	g.SetLimit(handlesAtOnce)
	for i := range n {
		g.Go(func() error {
			errs[i] = do(i)
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	return errs
}
