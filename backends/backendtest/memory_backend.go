package backendtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"golang.org/x/sync/semaphore"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// memory is the backend over a Memory in which an adoption changes the entry.
type memory struct{ store *Memory }

// Name implements ipam.Backend.
func (b memory) Name() string { return b.store.name }

// List implements ipam.Backend.
func (b memory) List(ctx context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		var pools []ipam.Pool
		err := b.store.request(ctx, "list", func() error {
			pools = b.store.listed()
			return nil
		})
		if err != nil {
			yield(ipam.Pool{}, fmt.Errorf("list %s: %w", b.store.name, err))
			return
		}
		for _, u := range pools {
			if !yield(u, nil) {
				return
			}
		}
	}
}

// Release implements ipam.Backend.
func (b memory) Release(ctx context.Context, ws []ipam.Warrant) []error {
	return poolByPool(ctx, ws, func(pool string, ws []ipam.Warrant) []error { return b.releasePool(ctx, pool, ws) })
}

// poolByPool releases one pool after another, in the order of the warrants, so that a test's
// requests are always the same.
func poolByPool(ctx context.Context, ws []ipam.Warrant, release func(pool string, ws []ipam.Warrant) []error) []error {
	return ipam.EachPool(ctx, ws, semaphore.NewWeighted(1), func(string) int64 { return 1 }, release)
}

// releasePool releases entries of one pool with a single request.
func (b memory) releasePool(ctx context.Context, pool string, ws []ipam.Warrant) []error {
	errs := make([]error, len(ws))
	rs := make([]ipam.Allocation, len(ws))
	for i, w := range ws {
		rs[i], errs[i] = w.Allocation()
	}
	answers := slices.Clone(errs)
	err := b.store.request(ctx, "release "+pool, func() error {
		for i, r := range rs {
			if errs[i] == nil {
				answers[i] = b.store.remove(r, r.Token)
			}
		}
		return nil
	})
	if err == nil {
		return answers
	}
	for i := range errs {
		if errs[i] == nil {
			errs[i] = err
		}
	}
	return errs
}

// remove removes an entry if its token is the expected one.
func (m *Memory) remove(r ipam.Allocation, token string) error {
	e := m.find(r)
	switch {
	case e == nil:
		return nil
	case strconv.Itoa(e.version) != token:
		return fmt.Errorf("%w: it is now %+v", ipam.ErrChanged, e.owner)
	}
	m.entries = slices.DeleteFunc(m.entries, func(other *memoryEntry) bool { return other == e })
	return nil
}

// withTombstones is the backend over a Memory in which an adoption writes nothing.
type withTombstones struct{ memory }

// Release implements ipam.Backend. It writes all tombstones and checks all owners again. Then
// it removes the entries or puts the owners back. It makes one request at a time.
func (b withTombstones) Release(ctx context.Context, ws []ipam.Warrant) []error {
	errs, marked, rs := make([]error, len(ws)), make([]string, len(ws)), make([]ipam.Allocation, len(ws))
	var left []ipam.Warrant
	var where []int // the indices of those left
	for i, w := range ws {
		if rs[i], errs[i] = w.Allocation(); errs[i] != nil {
			continue
		}
		if marked[i], errs[i] = b.bury(ctx, rs[i]); errs[i] == nil && marked[i] != "" {
			left, where = append(left, w), append(where, i)
		}
	}
	fresh, answers := ipam.Renew(ctx, left)
	for n, i := range where {
		errs[i] = ipam.Begun(b.finish(ctx, rs[i], fresh[n], answers[n], marked[i]))
	}
	return errs
}

// bury writes the tombstone. It returns the entry's new token, or an empty string if the entry
// is gone.
func (b withTombstones) bury(ctx context.Context, r ipam.Allocation) (marked string, err error) {
	err = b.store.request(ctx, "bury "+r.Pool, func() error {
		e := b.store.find(r)
		switch {
		case e == nil:
			return nil
		case e.owner.Pod != r.Owner.Pod || !e.tombstone && strconv.Itoa(e.version) != r.Token:
			return ipam.ErrChanged
		case !e.tombstone:
			e.tombstone = true
			b.store.wrote(e)
		}
		marked = strconv.Itoa(e.version)
		return nil
	})
	return marked, err
}

// finish removes the entry if there is a fresh warrant. If the owner came back, it puts the
// owner back.
func (b withTombstones) finish(ctx context.Context, r ipam.Allocation, fresh ipam.Warrant, why error, marked string) error {
	if errors.Is(why, ipam.ErrReturned) {
		if back := b.Mend(ctx, r); back != nil {
			return back
		}
		return why
	}
	if why != nil {
		return why
	}
	if _, err := fresh.Allocation(); err != nil {
		return err
	}
	return b.store.request(ctx, "remove "+r.Pool, func() error { return b.store.remove(r, marked) })
}

// Mend implements ipam.Mender.
func (b withTombstones) Mend(ctx context.Context, r ipam.Allocation) error {
	return b.store.request(ctx, "restore "+r.Pool, func() error {
		if e := b.store.find(r); e != nil && e.tombstone && e.owner.Pod == r.Owner.Pod {
			e.tombstone = false
			b.store.wrote(e)
		}
		return nil
	})
}
