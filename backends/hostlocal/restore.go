package hostlocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// restoreWait is how long a restore waits for the lock of a network.
const restoreWait = 5 * time.Second

// A restoration is one call of Restore or Compare.
type restoration struct {
	d      *folder
	files  []file
	errs   []error
	groups [][]int // the indices of records that can be decoded, by attachment
}

// Compare implements ipam.Backend. It takes no lock.
func (b *Backend) Compare(ctx context.Context, pool string, rs []ipam.Record) []error {
	return b.restore(ctx, pool, rs, func(r *restoration) {
		for _, group := range r.groups {
			r.free(group)
		}
	})
}

// Restore implements ipam.Backend. It puts back all leases of an attachment or none.
func (b *Backend) Restore(ctx context.Context, pool string, rs []ipam.Record) []error {
	return b.restore(ctx, pool, rs, func(r *restoration) {
		unlock, err := r.d.lock(ctx, restoreWait)
		if err != nil {
			r.answer(err)
			return
		}
		defer unlock()
		for _, group := range r.groups {
			if err := ctx.Err(); err != nil {
				r.settle(group, err)
				continue
			}
			r.put(r.free(group))
		}
		if err := r.d.sync(); err != nil {
			r.answer(err)
		}
	})
}

// restore decodes the records, opens the folder, and calls do.
func (b *Backend) restore(ctx context.Context, pool string, rs []ipam.Record, do func(*restoration)) []error {
	r := &restoration{files: make([]file, len(rs)), errs: make([]error, len(rs))}
	r.decode(pool, rs)
	d, err := b.openPool(pool)
	switch {
	case ctx.Err() != nil:
		r.answer(ctx.Err())
	case errors.Is(err, fs.ErrNotExist):
		r.answer(fmt.Errorf("%w: its folder is gone", ipam.ErrTaken))
	case err != nil:
		r.answer(err)
	default:
		r.d = d
		defer d.close()
		do(r)
	}
	return r.errs
}

// decode decodes the records, and groups them by attachment. If two records have the same
// address, the second is refused.
func (r *restoration) decode(pool string, rs []ipam.Record) {
	names := make(map[string]bool)
	owners := make([]string, len(rs))
	var valid []int
	for i, one := range rs {
		f, err := readRecord(pool, one)
		if err == nil && names[f.name] {
			err = fmt.Errorf("%w: another record goes there first", ipam.ErrTaken)
		}
		if r.files[i], r.errs[i] = f, err; err != nil {
			continue
		}
		names[f.name] = true
		_, of, _ := f.lease()
		if owners[i] = of.String(); of.id == "" {
			owners[i] = f.name // an empty file has no siblings
		}
		valid = append(valid, i)
	}
	r.groups = ipam.ByPool(valid, func(i int) string { return owners[i] })
}

// answer sets the answer for each record that has none.
func (r *restoration) answer(err error) {
	for i := range r.errs {
		if r.errs[i] == nil {
			r.errs[i] = err
		}
	}
}

// settle sets the answer for some records.
func (r *restoration) settle(indices []int, err error) {
	for _, i := range indices {
		r.errs[i] = err
	}
}

// free compares the records of one attachment with the folder, and returns those whose
// places are free. If the place of one is taken, it returns none.
func (r *restoration) free(group []int) []int {
	var free []int
	var kept error
	for _, i := range group {
		r.errs[i] = r.d.compare(r.files[i])
		switch err := r.errs[i]; {
		case err == nil:
			free = append(free, i)
		case !errors.Is(err, ipam.ErrPresent):
			kept = fmt.Errorf("its sibling %s cannot be put back: %w", r.files[i].name, err)
		}
	}
	if kept != nil {
		r.settle(free, kept)
		return nil
	}
	return free
}

// put puts the records of one attachment back. If one fails, it removes those it already put
// back, which nothing can have changed under the lock.
func (r *restoration) put(free []int) {
	for n, i := range free {
		err := r.d.create(r.files[i])
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%w: %w", ipam.ErrTaken, err)
		}
		if err == nil {
			continue
		}
		r.errs[i] = err
		for _, before := range free[:n] {
			if undo := r.d.remove(r.files[before].name); undo == nil {
				r.errs[before] = fmt.Errorf("its sibling %s cannot be put back: %w", r.files[i].name, err)
			}
		}
		r.settle(free[n+1:], err)
		return
	}
}
