package calico

import (
	"context"
	"errors"
	"fmt"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Restore implements ipam.Backend. One write puts back all addresses of a block.
// It is conditional on the block as it was just read, and the ordinals must be
// free. The handles are written in the same transaction, or right before the block
// if the datastore has none, as Calico's ADD does: an interruption leaves a handle
// that counts too much, and never an address without a handle. Restore never
// creates a block.
func (b *Backend) Restore(ctx context.Context, pool string, rs []ipam.Record) []error {
	return b.restore(ctx, pool, rs, func(store datastore) datastore { return store })
}

// Compare implements ipam.Backend. It is a Restore that stores nothing.
func (b *Backend) Compare(ctx context.Context, pool string, rs []ipam.Record) []error {
	return b.restore(ctx, pool, rs, func(store datastore) datastore { return readOnly{store} })
}

// readOnly is a datastore that accepts every write and stores nothing.
type readOnly struct{ datastore }

func (readOnly) write(_ context.Context, objects ...object) ([]object, error) { return objects, nil }

// restore puts the records back into what the function makes of the datastore.
func (b *Backend) restore(ctx context.Context, pool string, rs []ipam.Record, of func(datastore) datastore) []error {
	r := restoration{task: newTask(b, pool, len(rs))}
	store, err := b.datastore(ctx)
	if err == nil {
		err = store.ready(ctx)
	}
	if err != nil {
		r.answer(err)
		return r.errs
	}
	r.store = of(store)
	if pool == emptyHandles {
		each(len(rs), func(i int) { r.errs[i] = restoreEmptyHandle(ctx, r.store, rs[i]) })
		return r.errs
	}
	r.decode(rs)
	for try := 0; len(r.pending) > 0 && try < maxConflicts+len(rs); try++ {
		r.attempt(ctx)
	}
	return r.errs
}

// A restoration is one call of Restore or Compare for a block.
type restoration struct {
	task
	allocations []recordedAllocation // by the index of the record
}

// decode decodes the records, and decides those that cannot be decoded.
func (r *restoration) decode(rs []ipam.Record) {
	r.allocations = make([]recordedAllocation, len(rs))
	for i := range rs {
		var err error
		if r.allocations[i], err = readRecord(r.store, r.pool, rs[i]); err != nil {
			r.decide(i, fmt.Errorf("the record of %s cannot be restored: %w", rs[i].IP, err))
		}
	}
}

// attempt reads the block and puts back the records whose ordinals are free. An
// entry that stays pending met a conflict, or did not fit into one write.
func (r *restoration) attempt(ctx context.Context) {
	before, err := r.read(ctx)
	if err != nil {
		r.answer(err)
		return
	}
	entries := fit(r.store, r.partition(before), func(i int) string { return r.allocations[i].id() })
	if len(entries) == 0 {
		return
	}
	var allocations []recordedAllocation
	for _, i := range entries {
		allocations = append(allocations, r.allocations[i])
	}
	after, err := before.restore(allocations)
	if err != nil {
		r.answer(err)
		return
	}
	if counted, ok := r.count(ctx, after, entries); ok {
		r.write(ctx, after, counted, entries)
	}
}

// read reads the block.
func (r *restoration) read(ctx context.Context) (block, error) {
	o, err := r.store.get(ctx, blocks, r.pool)
	switch {
	case errors.Is(err, errGone):
		return block{}, fmt.Errorf("%w: block %s does not exist any more", ipam.ErrTaken, r.pool)
	case err != nil:
		return block{}, r.store.transient(fmt.Errorf("read block: %w", err))
	}
	b, err := readBlock(o)
	switch {
	case err == nil && b.cidr.String() != r.pool:
		err = fmt.Errorf("its cidr is %s, which is not the block of that name", b.cidr)
	case err == nil && b.deleted:
		err = fmt.Errorf("%w: Calico is deleting the block", ipam.ErrTaken)
	}
	if err != nil {
		err = fmt.Errorf("block %s cannot be written: %w", r.pool, err)
	}
	return b, err
}

// partition decides the entries whose ordinal is not free. The others stay pending.
// It returns these, each ordinal once.
func (r *restoration) partition(before block) []int {
	var entries []int
	pending := r.pending
	r.pending = nil
	chosen := make(map[int]bool)
	for _, i := range pending {
		a := r.allocations[i]
		if before.allocations[a.Ordinal] != nil {
			r.errs[i] = a.taken(before)
			continue
		}
		r.errs[i] = fmt.Errorf("%w: other writers keep changing the block", ipam.ErrAgain)
		r.pending = append(r.pending, i)
		if !chosen[a.Ordinal] {
			entries = append(entries, i)
		}
		chosen[a.Ordinal] = true
	}
	return entries
}

// taken returns the answer for a record whose ordinal is allocated.
func (a recordedAllocation) taken(in block) error {
	now := in.allocation(a.Ordinal)
	if now.Token == a.token() {
		return ipam.ErrPresent
	}
	return fmt.Errorf("%w: %s now belongs to %s", ipam.ErrTaken, now.IP, ownerOf(now))
}

// ownerOf names the owner of an allocation for an error.
func ownerOf(r ipam.Allocation) string {
	switch {
	case r.Foreign != "":
		return r.Foreign
	case r.Owner.Pod != ipam.PodRef{}:
		return "pod " + r.Owner.Pod.String()
	case r.Group != "":
		return "handle " + r.Group
	default:
		return "an unknown owner"
	}
}

// write stores the block, and decides the entries that it put back. If the answer of
// the datastore is lost, it reads the block again.
func (r *restoration) write(ctx context.Context, after block, counted []object, entries []int) {
	_, err := r.store.write(ctx, append([]object{after.object}, counted...)...)
	if errors.Is(err, errConflict) || errors.Is(err, errGone) {
		return
	}
	if err != nil {
		now, unread := r.read(ctx)
		for _, i := range entries {
			a := r.allocations[i]
			if unread == nil && now.allocations[a.Ordinal] != nil && errors.Is(a.taken(now), ipam.ErrPresent) {
				r.decide(i, nil)
			}
		}
		r.answer(kube.Unsure(r.store.transient(fmt.Errorf("write block: %w", err))))
		return
	}
	for _, i := range entries {
		r.decide(i, nil)
	}
}
