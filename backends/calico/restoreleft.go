package calico

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// restoreLeftovers creates handles without an address again.
func restoreEmptyHandles(ctx context.Context, store datastore, rs []reaper.Record, errs []error) {
	var g errgroup.Group
	g.SetLimit(handlesAtOnce)
	for i := range rs {
		g.Go(func() error {
			errs[i] = restoreEmptyHandle(ctx, store, rs[i])
			return nil
		})
	}
	_ = g.Wait() // every failure is in errs
}

// restoreLeftover creates a handle, again and again while that may do better.
func restoreEmptyHandle(ctx context.Context, store datastore, r reaper.Record) error {
	var stored handleRecord
	if err := decodeStrictly(r.Stored, &stored); err != nil {
		return fmt.Errorf("the record of handle %s cannot be restored: %w", r.Key, err)
	}
	h, err := stored.read(store)
	if err == nil && (r.Pool != emptyHandles || r.Key != h.id || r.IP != "") {
		err = fmt.Errorf("it is of %q in pool %q with address %q", r.Key, r.Pool, r.IP)
	}
	if err != nil {
		return fmt.Errorf("the record of handle %s cannot be restored: %w", r.Key, err)
	}
	uncertain := false
	for try := 1; ; try++ {
		err := createEmptyHandle(ctx, store, h)
		if uncertain && errors.Is(err, reaper.ErrPresent) { // it was carried out all the same
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

// createLeftover creates a handle if there is none.
func createEmptyHandle(ctx context.Context, store datastore, h handle) error {
	now, err := fetchHandle(ctx, store, h.id)
	switch {
	case errors.Is(err, errGone):
		_, err = store.write(ctx, h.object)
		if errors.Is(err, errConflict) {
			return fmt.Errorf("%w: somebody creates handle %s", err, h.id)
		}
		return store.transient(err)
	case errors.Is(err, errUnreadable):
		return fmt.Errorf("%w: %w", reaper.ErrTaken, err)
	case err != nil:
		return store.transient(err)
	case now.deleted == h.deleted && maps.Equal(now.counts, h.counts):
		return reaper.ErrPresent
	default:
		return fmt.Errorf("%w: handle %s counts %v now", reaper.ErrTaken, h.id, now.counts)
	}
}
