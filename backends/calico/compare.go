package calico

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Compare implements reaper.Backend. It reads the block once, and each handle of the
// records.
func (b *Backend) Compare(ctx context.Context, pool string, rs []reaper.Record) []error {
	r, err := b.newRestoration(ctx, pool, len(rs))
	switch {
	case err != nil:
		r.answer(err)
	case pool == emptyHandles:
		compareEmptyHandles(ctx, r.store, rs, r.errs)
	default:
		r.decode(rs)
		r.repeat(ctx, r.compare)
	}
	return r.errs
}

// compare is attempt without its writes. Of two records of one ordinal, it decides both as
// if each was alone.
func (r *restoration) compare(ctx context.Context) {
	entries := r.free(ctx)
	after, ok := r.preview(entries)
	if !ok {
		return
	}
	if r.countEach(ctx, after, entries, func(handle, int) error { return nil }) {
		r.answer(nil)
	}
}

// compareEmptyHandles compares the recorded handles without an address.
func compareEmptyHandles(ctx context.Context, store datastore, rs []reaper.Record, errs []error) {
	var g errgroup.Group
	g.SetLimit(handlesAtOnce)
	for i := range rs {
		g.Go(func() error {
			h, err := readEmptyHandle(store, rs[i])
			if err == nil {
				err = compareHandle(ctx, store, h)
			}
			errs[i] = err
			return nil
		})
	}
	_ = g.Wait() // errs has the errors
}
