package whereabouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	"github.com/sethvargo/go-retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Record implements ipam.Backend. It reads nothing: the token is the entry as it
// is stored, and an entry that has changed is not released.
func (b *Pools) Record(_ context.Context, rs []ipam.Allocation) ([]json.RawMessage, error) {
	records := make([]json.RawMessage, len(rs))
	for i, r := range rs {
		if entry := json.RawMessage(r.Token); checkAllocation(entry) == nil {
			records[i] = entry
		}
	}
	return records, nil
}

// Restore implements ipam.Backend with one JSON patch for up to ipam.MaxBatch
// entries. The patch is conditional on the pool as it was read. If another writer
// changes the pool, Restore reads it again. It never creates a pool.
func (b *Pools) Restore(ctx context.Context, pool string, rs []ipam.Record) []error {
	good, errs := checkRecords(PoolsName, pool, rs, func(r ipam.Record) error { return checkAllocation(r.Stored) })
	for some := range slices.Chunk(slices.Sorted(maps.Keys(good)), ipam.MaxBatch) {
		pending := make(map[int]ipam.Record, len(some))
		for _, i := range some {
			pending[i] = good[i]
		}
		err := b.restore(ctx, pool, pending, errs)
		for i := range pending {
			errs[i] = err
		}
	}
	return errs
}

// Compare implements ipam.Backend with one read of the pool. Without a good record, it
// reads nothing.
func (b *Pools) Compare(ctx context.Context, pool string, rs []ipam.Record) []error {
	good, errs := checkRecords(PoolsName, pool, rs, func(r ipam.Record) error { return checkAllocation(r.Stored) })
	if len(good) == 0 {
		return errs
	}
	err := retry.Do(ctx, restoreBackoff(), func(ctx context.Context) error {
		p, err := b.readForRestore(ctx, pool)
		if err != nil {
			return err
		}
		p.settle(good, errs)
		return nil
	})
	if err != nil {
		for i := range good {
			errs[i] = err
		}
	}
	return errs
}

// readForRestore reads a pool. If the pool is gone, the error wraps ErrTaken.
func (b *Pools) readForRestore(ctx context.Context, pool string) (ipPool, error) {
	p, err := b.pool(ctx, pool)
	if gone(err, poolResource, pool) {
		return p, errPoolGone
	}
	if err != nil {
		return p, retryable(err)
	}
	return p, nil
}

// settle answers the records whose places are not free, and removes them from pending.
func (p ipPool) settle(pending map[int]ipam.Record, errs []error) {
	keys := p.keys()
	for i, r := range pending {
		if err := p.checkFree(keys, r); err != nil {
			errs[i] = err
			delete(pending, i)
		}
	}
}

var errPoolGone = fmt.Errorf("%w: the pool is gone", ipam.ErrTaken)

// restore puts entries back into a pool. It answers the entries that are decided,
// and removes them from pending. Its error is the answer for the others.
func (b *Pools) restore(ctx context.Context, pool string, pending map[int]ipam.Record, errs []error) error {
	unsure := false // an answer to a patch was lost, so a stored entry may be ours
	return retry.Do(ctx, restoreBackoff(), func(ctx context.Context) error {
		p, err := b.readForRestore(ctx, pool)
		if err != nil {
			return err
		}
		begun := maps.Clone(pending)
		p.settle(pending, errs)
		for i := range begun {
			if unsure && errors.Is(errs[i], ipam.ErrPresent) {
				errs[i] = nil
			}
		}
		if len(pending) == 0 {
			return nil
		}
		err = b.patch(ctx, pool, p.additions(pending))
		switch {
		case err == nil:
			clear(pending)
			return nil
		case gone(err, poolResource, pool):
			return errPoolGone
		case !apierrors.IsInvalid(err):
			err = retryable(err)
			unsure = unsure || errors.Is(err, ipam.ErrAgain)
			return err
		case len(causes(err)) == 0:
			return retry.RetryableError(fmt.Errorf("%w: another writer changed the pool: %w", ipam.ErrAgain, err))
		case !answerInvalid(pending, err, errs):
			return fmt.Errorf("the API server refuses the pool with the entries; correct the field that it names: %w", err)
		default:
			return retry.RetryableError(err) // for the others
		}
	})
}

// checkFree returns nil if the place of the record is free, ErrPresent if its entry
// is there, and an error that wraps ErrTaken if another entry is there.
func (p ipPool) checkFree(keys map[string]string, r ipam.Record) error {
	ip, err := addressAt(p.prefix, r.Key)
	if err != nil {
		return fmt.Errorf("the record of %s in %s: %w", r.Key, r.Pool, err)
	}
	if ip.String() != r.IP {
		return fmt.Errorf("the record of %s in %s: its address is %q, and the pool has %s at that offset", r.Key, r.Pool, r.IP, ip)
	}
	key, held := keys[r.Key]
	if !held {
		return nil
	}
	entry := p.allocations[key]
	if key == r.Key && sameJSON(entry, r.Stored) {
		return ipam.ErrPresent
	}
	var now v1alpha1.IPAllocation
	if err := kube.Decode(entry, &now); err != nil {
		now.PodRef = "" // the answer quotes the entry instead
	}
	return takenBy(now.PodRef, entry)
}

// keys returns the key of each allocation by the offset that the plugin reads from
// it. The plugin also reads +7 and 007 as 7 (toIPReservationList in its
// pkg/storage/kubernetes). A key that is no offset stands for itself.
func (p ipPool) keys() map[string]string {
	keys := make(map[string]string, len(p.allocations))
	for key := range p.allocations {
		if offset, err := strconv.ParseInt(key, 10, 64); err == nil {
			if plain := strconv.FormatInt(offset, 10); plain != key {
				keys[plain] = key
			}
		}
	}
	for key := range p.allocations {
		keys[key] = key
	}
	return keys
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

// answerInvalid answers the entries that break the schema of the pool, and removes
// them from pending. It reports whether there were any.
func answerInvalid(pending map[int]ipam.Record, refusal error, errs []error) bool {
	before := len(pending)
	for i, r := range pending {
		field := "spec.allocations." + r.Key
		if slices.ContainsFunc(causes(refusal), func(c metav1.StatusCause) bool {
			return c.Field == field || strings.HasPrefix(c.Field, field+".")
		}) {
			errs[i] = fmt.Errorf("the API server refuses the entry: %w", refusal)
			delete(pending, i)
		}
	}
	return len(pending) < before
}
