package calico

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// maxConflicts is how often one call tries a block that other writers keep
// changing. The warrants usually expire first.
const maxConflicts = 20

// Release implements ipam.Backend. One write releases all addresses of a block.
// Blocks are released at the same time.
// It is conditional on the block as it was just read, and each allocation must be
// as it was listed. The handles are written in the same transaction, or right after
// the block if the datastore has none. A handle is never written before its block:
// the plugin could not free an address without a handle, while a handle without
// addresses does no harm.
func (b *Backend) Release(ctx context.Context, ws []ipam.Warrant) []error {
	store, err := b.datastore(ctx)
	if err != nil {
		return slices.Repeat([]error{err}, len(ws))
	}
	one := func(string) int64 { return 1 }
	return ipam.EachPool(ctx, ws, b.room, one, func(pool string, ws []ipam.Warrant) []error {
		errs := make([]error, len(ws))
		if pool == emptyHandles {
			b.releaseEmptyHandles(ctx, store, ws, errs)
		} else {
			b.releaseBlock(ctx, store, pool, ws, errs)
		}
		return errs
	})
}

// releaseBlock releases addresses of one block.
func (b *Backend) releaseBlock(ctx context.Context, store datastore, pool string, ws []ipam.Warrant, errs []error) {
	r := release{task{Backend: b, store: store, pool: pool, errs: errs}, ws}
	for i, w := range ws {
		if _, errs[i] = w.Allocation(); errs[i] == nil {
			r.pending = append(r.pending, i)
		}
	}
	for try := 0; len(r.pending) > 0 && try < maxConflicts+len(ws); try++ {
		r.attempt(ctx)
	}
}

// A release is one call of Release for a block.
type release struct {
	task
	warrants []ipam.Warrant
}

// attempt reads the block and releases the allocations that are as they were
// listed. An entry that stays pending met a conflict, or did not fit into one
// write.
func (r *release) attempt(ctx context.Context) {
	o, err := r.store.get(ctx, blocks, r.pool)
	switch {
	case errors.Is(err, errGone):
		r.answer(nil)
		return
	case err != nil:
		r.answer(r.store.transient(fmt.Errorf("read block: %w", err)))
		return
	}
	before, err := readBlock(o)
	if err == nil && before.deleted {
		err = errors.New("its field deleted is set, so Calico is deleting it")
	}
	if err != nil {
		r.answer(fmt.Errorf("%w: block %s cannot be written: %w", ipam.ErrKept, r.pool, err))
		return
	}
	entries := fit(r.store, r.partition(before), func(e entry) string { return before.handleOf(e.ordinal) })
	if len(entries) == 0 {
		return
	}
	after, err := before.release(ordinals(entries))
	if err != nil {
		r.answer(fmt.Errorf("%w: %w", ipam.ErrKept, err))
		return
	}
	changes, err := r.changes(ctx, before, after, entries)
	if err != nil {
		r.answer(err)
		return
	}
	if r.fresh(entries) {
		r.write(ctx, after, changes, entries)
	}
}

// An entry is an allocation with a warrant.
type entry struct {
	index   int // the index of the warrant
	ordinal int // the ordinal in the block
}

// ordinals returns the ordinals of the entries in ascending order.
func ordinals(entries []entry) []int {
	all := make([]int, len(entries))
	for n, e := range entries {
		all[n] = e.ordinal
	}
	slices.Sort(all)
	return all
}

// partition decides the entries whose warrant is not valid, whose address is free,
// or whose allocation changed. It returns the others, which stay pending.
func (r *release) partition(before block) []entry {
	var entries []entry
	pending := r.pending
	r.pending = nil
	for _, i := range pending {
		res, err := r.warrants[i].Allocation()
		if err != nil {
			r.errs[i] = err
			continue
		}
		ordinal, err := before.find(res)
		if r.errs[i] = err; err != nil || ordinal < 0 {
			continue
		}
		r.errs[i] = fmt.Errorf("%w: other writers keep changing the block", ipam.ErrAgain)
		r.pending = append(r.pending, i)
		entries = append(entries, entry{i, ordinal})
	}
	return entries
}

// fresh reports whether every warrant is still valid, and decides the entries whose
// warrant is not.
func (r *release) fresh(entries []entry) bool {
	ok := true
	for _, e := range entries {
		if _, err := r.warrants[e.index].Allocation(); err != nil {
			r.decide(e.index, err)
			ok = false
		}
	}
	return ok
}

// write stores the block, and decides the entries that it released.
func (r *release) write(ctx context.Context, after block, changes []change, entries []entry) {
	objects := []object{after.object}
	if r.store.objectsPerWrite() > 1 {
		for _, c := range changes {
			objects = append(objects, c.after.object)
		}
	}
	written, err := r.store.write(ctx, objects...)
	switch {
	case errors.Is(err, errConflict):
		for _, c := range changes[:len(objects)-1] { // one of these may be the conflict
			r.known.forget(c.id)
		}
		return
	case errors.Is(err, errGone):
		r.answer(nil)
		return
	case err != nil && (len(objects) > 1 || !r.carriedOut(ctx, after, entries)):
		r.answer(kube.Unsure(r.store.transient(fmt.Errorf("write block: %w", err))))
		return
	}
	for n, c := range changes {
		if len(objects) > 1 {
			c.after.object = written[n+1]
			r.known.store(c.after)
		}
	}
	var left error
	if len(objects) == 1 {
		left = r.writeHandles(ctx, after.cidr, changes)
	}
	for _, e := range entries {
		r.decide(e.index, left)
	}
}

// carriedOut reports whether a write took effect although its answer was lost. Then
// the handles must be written, too. It asks also after the warrants have expired.
func (r *release) carriedOut(ctx context.Context, after block, entries []entry) bool {
	o, err := r.store.get(ipam.SendBy(ctx, time.Time{}), blocks, r.pool)
	if err != nil {
		return false
	}
	now, err := readBlock(o)
	return err == nil && now.cidr == after.cidr &&
		!slices.ContainsFunc(entries, func(e entry) bool { return now.allocations[e.ordinal] != nil })
}
