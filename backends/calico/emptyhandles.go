package calico

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// releaseEmptyHandle deletes a handle without an address, in the version that was listed.
func releaseEmptyHandle(ctx context.Context, store datastore, w ipam.Warrant) error {
	a, err := w.Allocation()
	if err != nil {
		return err
	}
	o := object{kind: handles, name: store.name(handles, a.Key)}
	if o.uid, o.revision, _ = strings.Cut(a.Token, "/"); o.revision == "" {
		return fmt.Errorf("%w: the handle was listed without a version", ipam.ErrKept)
	}
	_, err = store.write(ctx, o)
	switch {
	case errors.Is(err, errConflict):
		return fmt.Errorf("%w: the handle was written since it was listed", ipam.ErrChanged)
	case errors.Is(err, errGone):
		return nil
	}
	return kube.Unsure(store.transient(err))
}

// restoreEmptyHandle recreates a recorded handle without an address, unless its name is taken.
func restoreEmptyHandle(ctx context.Context, store datastore, r ipam.Record) error {
	h, err := readEmptyHandle(store, r)
	if err != nil {
		return err
	}
	if err := compareHandle(ctx, store, h); err != nil {
		return err
	}
	if _, err = store.write(ctx, h.object); errors.Is(err, errConflict) {
		return fmt.Errorf("%w: another writer created a handle with the name of %s", ipam.ErrAgain, h.id)
	}
	return kube.Unsure(store.transient(err))
}

// readEmptyHandle decodes the record of a handle without an address.
func readEmptyHandle(store datastore, r ipam.Record) (h handle, err error) {
	var stored handleRecord
	if err = decodeStrictly(r.Stored, &stored); err == nil {
		h, err = stored.read(store)
	}
	if err == nil && (r.Pool != emptyHandles || r.Key != h.id || r.IP != "") {
		err = fmt.Errorf("the record is of handle %q in pool %q with address %q", r.Key, r.Pool, r.IP)
	}
	if err != nil {
		return handle{}, fmt.Errorf("the record of handle %s cannot be restored: %w", r.Key, err)
	}
	return h, nil
}

// compareHandle returns nil if there is no handle of that name, ErrPresent if it is the same, an
// error that wraps ErrDeleting if it is being deleted, and one that wraps ErrTaken if it differs.
func compareHandle(ctx context.Context, store datastore, h handle) error {
	now, err := fetchHandle(ctx, store, h.id)
	switch {
	case errors.Is(err, errGone):
		return nil
	case errors.Is(err, errUnreadable):
		return fmt.Errorf("%w: %w", ipam.ErrTaken, err)
	case err != nil:
		return store.transient(err)
	case now.deleting != nil:
		return fmt.Errorf("%w: restore it once it is gone", now.deleting)
	case now.deleted == h.deleted && maps.Equal(now.counts, h.counts):
		return ipam.ErrPresent
	default:
		return fmt.Errorf("%w: handle %s now counts %v", ipam.ErrTaken, h.id, now.counts)
	}
}
