package calico

import (
	"context"
	"errors"
	"fmt"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Restore implements reaper.Backend. One write puts back all addresses of a block.
// It is conditional on the block as it was just read, and the ordinals must be
// free. The handles are written in the same transaction, or right before the block
// if the datastore has none, as Calico's ADD does: an interruption leaves a handle
// that counts too much, and never an address without a handle. Restore never
// creates a block.
func (b *Backend) Restore(ctx context.Context, pool string, rs []reaper.Record) []error {
	r, err := b.newRestoration(ctx, pool, len(rs))
	if err != nil {
		r.answer(err)
		return r.errs
	}
	if pool == emptyHandles {
		restoreEmptyHandles(ctx, r.store, rs, r.errs)
		return r.errs
	}
	r.run(ctx, rs)
	return r.errs
}

// A restoration is one call of Restore or Compare for a block.
type restoration struct {
	task
	allocations []recordedAllocation // by the index of the record
	counted     map[string]int       // by handle: what was counted in it, for addresses that are not there yet
	before      block                // as it was read last
	uncertain   map[int]bool         // what was written, or not: the answer was lost
}

// newRestoration returns a restore of n records, all of them pending. With an
// error, the datastore cannot be used.
func (b *Backend) newRestoration(ctx context.Context, pool string, n int) (restoration, error) {
	r := restoration{task: task{Backend: b, pool: pool, errs: make([]error, n)}}
	for i := range n {
		r.pending = append(r.pending, i)
	}
	var err error
	if r.store, err = b.datastore(ctx); err == nil {
		err = r.store.ready(ctx)
	}
	return r, err
}

// run puts back every record that it can. It tries again while other writers change
// the block.
func (r *restoration) run(ctx context.Context, rs []reaper.Record) {
	r.decode(rs)
	r.repeat(ctx, r.attempt)
	r.countDown(ctx)
}

// decode decodes the records, and decides those that cannot be decoded.
func (r *restoration) decode(rs []reaper.Record) {
	r.allocations = make([]recordedAllocation, len(rs))
	r.counted, r.uncertain = make(map[string]int), make(map[int]bool)
	for i := range rs {
		var err error
		if r.allocations[i], err = readRecord(r.store, r.pool, rs[i]); err != nil {
			r.decide(i, fmt.Errorf("the record of %s cannot be restored: %w", rs[i].IP, err))
		}
	}
}

// repeat calls attempt until all entries are decided. It gives up after maxConflicts
// attempts that decided none.
func (r *restoration) repeat(ctx context.Context, attempt func(context.Context)) {
	for failures := 0; len(r.pending) > 0 && failures < maxConflicts; {
		left := len(r.pending)
		if attempt(ctx); len(r.pending) < left {
			continue
		}
		failures++
		if err := pause(ctx, failures); err != nil {
			r.answer(err)
		}
	}
}

// attempt reads the block and puts back the records whose ordinals are free. An
// entry that stays pending met a conflict or a failure that may pass, or did not
// fit into one write.
func (r *restoration) attempt(ctx context.Context) {
	entries := fit(r.store, r.free(ctx), func(i int) string { return r.allocations[i].id() })
	after, ok := r.preview(entries)
	if !ok {
		return
	}
	if counted, ok := r.count(ctx, after, entries); ok {
		r.write(ctx, after, counted, entries)
	}
}

// free reads the block, and returns the entries whose ordinals are free, each ordinal
// once. It decides the others.
func (r *restoration) free(ctx context.Context) []int {
	o, err := r.store.get(ctx, blocks, r.pool)
	switch {
	case errors.Is(err, errGone):
		r.answer(fmt.Errorf("%w: block %s does not exist any more", reaper.ErrTaken, r.pool))
		return nil
	case err != nil:
		r.failed(fmt.Errorf("read block: %w", err))
		return nil
	}
	before, err := readBlock(o)
	switch {
	case err == nil && before.cidr.String() != r.pool:
		err = fmt.Errorf("its cidr is %s, which is not the block of that name", before.cidr)
	case err == nil && before.deleted:
		err = fmt.Errorf("%w: Calico is deleting the block", reaper.ErrTaken)
	}
	if err != nil {
		r.answer(fmt.Errorf("block %s cannot be written: %w", r.pool, err))
		return nil
	}
	r.before = before
	return r.partition()
}

// preview returns the block with the entries put back. It reports false if there is
// nothing to write: there are no entries, or they are decided.
func (r *restoration) preview(entries []int) (after block, ok bool) {
	if len(entries) == 0 {
		return after, false
	}
	var allocations []recordedAllocation
	for _, i := range entries {
		allocations = append(allocations, r.allocations[i])
	}
	after, err := r.before.restore(allocations)
	if err != nil {
		r.answer(err)
	}
	return after, err == nil
}

// failed decides all pending entries, unless another attempt may succeed. Then they
// stay pending with this error.
func (r *restoration) failed(err error) {
	if err = r.store.transient(err); !errors.Is(err, reaper.ErrAgain) {
		r.answer(err)
	}
	for _, i := range r.pending {
		r.errs[i] = err
	}
}

// partition decides the entries whose ordinal is not free. The others stay pending.
// It returns these, each ordinal once.
func (r *restoration) partition() []int {
	var entries []int
	pending := r.pending
	r.pending = nil
	chosen := make(map[int]bool)
	for _, i := range pending {
		a := r.allocations[i]
		if r.before.allocations[a.Ordinal] != nil {
			r.errs[i] = r.taken(i)
			continue
		}
		r.errs[i] = fmt.Errorf("%w: other writers keep changing the block", reaper.ErrAgain)
		r.pending = append(r.pending, i)
		if !chosen[a.Ordinal] {
			entries = append(entries, i)
		}
		chosen[a.Ordinal] = true
	}
	return entries
}

// taken returns the answer for a record whose ordinal is allocated.
func (r *restoration) taken(i int) error {
	a := r.allocations[i]
	now := r.before.allocation(a.Ordinal)
	switch {
	case now.Token != a.token():
		return fmt.Errorf("%w: %s now belongs to %s", reaper.ErrTaken, now.IP, ownerOf(now))
	case r.uncertain[i]: // our write took effect, and only its answer was lost
		return nil
	default:
		return reaper.ErrPresent
	}
}

// ownerOf names the owner of an allocation for an error.
func ownerOf(r reaper.Allocation) string {
	switch {
	case r.Foreign != "":
		return r.Foreign
	case r.Owner.Pod != reaper.PodRef{}:
		return "pod " + r.Owner.Pod.String()
	case r.Group != "":
		return "handle " + r.Group
	default:
		return "an unknown owner"
	}
}

// write stores the block, and decides the entries that it put back.
func (r *restoration) write(ctx context.Context, after block, counted []handle, entries []int) {
	objects := []object{after.object}
	for _, h := range counted {
		objects = append(objects, h.object)
	}
	_, err := r.store.write(ctx, objects...)
	switch {
	case errors.Is(err, errConflict), errors.Is(err, errGone):
		return
	case err != nil:
		for _, i := range entries {
			r.uncertain[i] = true
		}
		r.failed(fmt.Errorf("write block: %w", err))
		return
	}
	r.before = after
	for _, i := range entries {
		r.decide(i, nil)
		id := r.allocations[i].id()
		r.counted[id] = max(0, r.counted[id]-1)
	}
}
