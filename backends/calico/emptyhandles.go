package calico

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// releaseEmptyHandles deletes the handles without an address that are as they were
// listed.
func (b *Backend) releaseEmptyHandles(ctx context.Context, store datastore, ws []reaper.Warrant, errs []error) {
	var g errgroup.Group
	g.SetLimit(handlesAtOnce)
	for i, w := range ws {
		g.Go(func() error {
			errs[i] = b.releaseEmptyHandle(ctx, store, w)
			return nil
		})
	}
	_ = g.Wait() // errs has the errors
}

// releaseEmptyHandle deletes one handle. A deletion is conditional on the version
// that was listed.
func (b *Backend) releaseEmptyHandle(ctx context.Context, store datastore, w reaper.Warrant) error {
	res, err := w.Allocation()
	if err != nil {
		return err
	}
	h, ok := b.known.find(res.Key)
	if !ok {
		if h, err = fetchHandle(ctx, store, res.Key); errors.Is(err, errGone) {
			return nil
		} else if err != nil {
			return readFailed(store, err)
		}
		if _, err = w.Allocation(); err != nil {
			return err
		}
	}
	if h.token() != res.Token {
		return reaper.ErrChanged
	}
	h.raw = nil
	_, err = store.write(ctx, h.object)
	b.known.forget(res.Key)
	switch {
	case errors.Is(err, errConflict):
		if _, err := fetchHandle(ctx, store, res.Key); errors.Is(err, errGone) {
			return nil // etcd reports a key that is gone as a conflict
		}
		return fmt.Errorf("%w: the handle was written since it was listed", reaper.ErrChanged)
	case errors.Is(err, errGone):
		return nil
	}
	return kube.Unsure(store.transient(err))
}

// restoreEmptyHandles creates the recorded handles without an address again.
func restoreEmptyHandles(ctx context.Context, store datastore, rs []reaper.Record, errs []error) {
	var g errgroup.Group
	g.SetLimit(handlesAtOnce)
	for i := range rs {
		g.Go(func() error {
			errs[i] = restoreEmptyHandle(ctx, store, rs[i])
			return nil
		})
	}
	_ = g.Wait() // errs has the errors
}

// restoreEmptyHandle creates one handle. It tries again after a failure that may
// pass.
func restoreEmptyHandle(ctx context.Context, store datastore, r reaper.Record) error {
	h, err := readEmptyHandle(store, r)
	if err != nil {
		return err
	}
	uncertain := false
	for try := 1; ; try++ {
		err := createEmptyHandle(ctx, store, h)
		if uncertain && errors.Is(err, reaper.ErrPresent) { // an earlier write took effect
			return nil
		}
		again := errors.Is(err, errConflict) || errors.Is(err, reaper.ErrAgain)
		if !again || try == handleTries {
			return err
		}
		uncertain = uncertain || !errors.Is(err, errConflict)
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// readEmptyHandle decodes the record of a handle without an address.
func readEmptyHandle(store datastore, r reaper.Record) (handle, error) {
	var stored handleRecord
	if err := decodeStrictly(r.Stored, &stored); err != nil {
		return handle{}, fmt.Errorf("the record of handle %s cannot be restored: %w", r.Key, err)
	}
	h, err := stored.read(store)
	if err == nil && (r.Pool != emptyHandles || r.Key != h.id || r.IP != "") {
		err = fmt.Errorf("the record is of handle %q in pool %q with address %q", r.Key, r.Pool, r.IP)
	}
	if err != nil {
		return handle{}, fmt.Errorf("the record of handle %s cannot be restored: %w", r.Key, err)
	}
	return h, nil
}

// createEmptyHandle creates a handle unless there is one of its name.
func createEmptyHandle(ctx context.Context, store datastore, h handle) error {
	if err := compareHandle(ctx, store, h); err != nil {
		return err
	}
	_, err := store.write(ctx, h.object)
	if errors.Is(err, errConflict) {
		return fmt.Errorf("%w: another writer created handle %s", err, h.id)
	}
	return store.transient(err)
}

// compareHandle returns nil if there is no handle of that name, ErrPresent if there is
// the same one, and an error that wraps ErrTaken if there is another one.
func compareHandle(ctx context.Context, store datastore, h handle) error {
	now, err := fetchHandle(ctx, store, h.id)
	switch {
	case errors.Is(err, errGone):
		return nil
	case errors.Is(err, errUnreadable):
		return fmt.Errorf("%w: %w", reaper.ErrTaken, err)
	case err != nil:
		return store.transient(err)
	case now.deleted == h.deleted && maps.Equal(now.counts, h.counts):
		return reaper.ErrPresent
	default:
		return fmt.Errorf("%w: handle %s now counts %v", reaper.ErrTaken, h.id, now.counts)
	}
}
