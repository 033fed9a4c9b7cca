package whereabouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Record implements ipam.Backend. It reads nothing: the token is the entry as it
// is stored, and an entry that has changed is not released.
func (b *Pools) Record(_ context.Context, rs []ipam.Allocation) ([]json.RawMessage, error) {
	records := make([]json.RawMessage, len(rs))
	for i, r := range rs {
		if stored := json.RawMessage(r.Token); checkEntry(stored) == nil {
			records[i] = stored
		}
	}
	return records, nil
}

// Restore implements ipam.Backend with one JSON patch. The patch is conditional on the pool as it
// was read. Restore never creates a pool.
func (b *Pools) Restore(ctx context.Context, pool string, rs []ipam.Record) []error {
	p, free, errs := b.compare(ctx, pool, rs)
	if len(free) == 0 {
		return errs
	}
	err := b.patch(ctx, pool, p.additions(free))
	switch {
	case gone(err, poolResource, pool):
		err = errPoolGone
	case apierrors.IsInvalid(err) && len(causes(err)) == 0:
		err = fmt.Errorf("%w: another writer changed the pool: %w", ipam.ErrAgain, err)
	case apierrors.IsInvalid(err):
		err = fmt.Errorf("the API server refuses the pool with the entries; correct the field that it names: %w", err)
	}
	for i := range free {
		errs[i] = kube.Unsure(kube.Transient(err))
	}
	return errs
}

// Compare implements ipam.Backend with one read of the pool.
func (b *Pools) Compare(ctx context.Context, pool string, rs []ipam.Record) []error {
	_, _, errs := b.compare(ctx, pool, rs)
	return errs
}

var errPoolGone = fmt.Errorf("%w: the pool is gone", ipam.ErrTaken)

// compare returns the pool, the records whose places in it are free, by index, and what Compare
// answers. Without a good record, it reads nothing.
func (b *Pools) compare(ctx context.Context, pool string, rs []ipam.Record) (p ipPool, free map[int]ipam.Record, errs []error) {
	free, errs = checkRecords(pool, rs, readEntry)
	if len(free) == 0 {
		return p, free, errs
	}
	p, err := b.pool(ctx, pool)
	if gone(err, poolResource, pool) {
		err = errPoolGone
	}
	for i, r := range free {
		if errs[i] = kube.Transient(err); err == nil {
			errs[i] = p.checkFree(r)
		}
		if errs[i] != nil {
			delete(free, i)
		}
	}
	return p, free, errs
}

// checkEntry returns an error if the stored document is not an entry of a pool.
func checkEntry(stored json.RawMessage) error {
	var e *entry
	if err := kube.Decode(stored, &e); err != nil {
		return fmt.Errorf("the stored entry: %w", err)
	}
	if e == nil {
		return errors.New("the stored entry is null")
	}
	return nil
}

// readEntry returns a record if it has an entry.
func readEntry(r ipam.Record) (ipam.Record, error) { return r, checkEntry(r.Stored) }

// checkFree returns nil if the place of the record is free, ErrPresent if its entry
// is there, and an error that wraps ErrTaken if another entry is there.
func (p ipPool) checkFree(r ipam.Record) error {
	ip, err := addressAt(p.prefix, r.Key)
	if err != nil {
		return fmt.Errorf("the record of %s in %s: %w", r.Key, r.Pool, err)
	}
	if ip.String() != r.IP {
		return fmt.Errorf("the record of %s in %s: its address is %q, and the pool has %s at that offset", r.Key, r.Pool, r.IP, ip)
	}
	stored, held := p.allocations[r.Key]
	if !held {
		return nil
	}
	if sameJSON(stored, r.Stored) {
		return ipam.ErrPresent
	}
	var e entry
	if err := kube.Decode(stored, &e); err != nil {
		e.PodRef = "" // the answer quotes the entry instead
	}
	return takenBy(e.PodRef, stored)
}

// additions returns the patch that adds the entries to the pool. It begins with a
// test of the resourceVersion: an add operation would replace an entry that is
// there.
func (p ipPool) additions(entries map[int]ipam.Record) []operation {
	version := json.RawMessage(strconv.Quote(p.Metadata.ResourceVersion))
	patch := []operation{{Op: "test", Path: "/metadata/resourceVersion", Value: version}}
	if p.allocations == nil {
		patch = append(patch, operation{Op: "add", Path: "/spec/allocations", Value: json.RawMessage("{}")})
	}
	for _, i := range slices.Sorted(maps.Keys(entries)) {
		// Keys are decimal numbers here, so the path needs no escaping.
		patch = append(patch, operation{Op: "add", Path: "/spec/allocations/" + entries[i].Key, Value: entries[i].Stored})
	}
	return patch
}
