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

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Record implements reaper.Recorder. It reads nothing: the token is the entry as
// it is stored, and what is another one by then is not released.
func (b *Pools) Record(_ context.Context, rs []reaper.Allocation) ([]json.RawMessage, error) {
	records := make([]json.RawMessage, len(rs))
	for i, r := range rs {
		if entry := json.RawMessage(r.Token); checkAllocation(entry) == nil {
			records[i] = entry
		}
	}
	return records, nil
}

// Restore implements reaper.Recorder: one JSON patch for reaper.MaxBatch entries,
// on the condition that the pool is as it was read. Somebody who writes it between
// has the pool read again. A pool is never created.
func (b *Pools) Restore(ctx context.Context, pool string, rs []reaper.Record) []error {
	good, errs := checkRecords(PoolsName, pool, rs, func(r reaper.Record) error { return checkAllocation(r.Stored) })
	for some := range slices.Chunk(slices.Sorted(maps.Keys(good)), reaper.MaxBatch) {
		pending := make(map[int]reaper.Record, len(some))
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

var errPoolGone = fmt.Errorf("%w: the pool is gone", reaper.ErrTaken)

// restore puts entries back into a pool. It answers for those that are decided
// and takes them out of pending; its error is the answer for the others.
func (b *Pools) restore(ctx context.Context, pool string, pending map[int]reaper.Record, errs []error) error {
	unsure := false // an answer to a patch was lost, and what is there may be ours
	return retry.Do(ctx, restoreTries(), func(ctx context.Context) error {
		p, err := b.pool(ctx, pool)
		if gone(err, poolResource, pool) {
			return errPoolGone
		}
		if err != nil {
			return tryAgain(err)
		}
		keys := p.keys()
		for i, r := range pending {
			err := p.free(keys, r)
			if err == nil {
				continue
			}
			if errors.Is(err, reaper.ErrPresent) && unsure {
				err = nil
			}
			errs[i] = err
			delete(pending, i)
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
			err = tryAgain(err)
			unsure = unsure || errors.Is(err, reaper.ErrAgain)
			return err
		case len(causes(err)) == 0:
			return retry.RetryableError(fmt.Errorf("%w: somebody wrote the pool meanwhile: %w", reaper.ErrAgain, err))
		case !dismiss(pending, err, errs):
			return fmt.Errorf("the API server would not accept the pool: %w", err)
		default:
			return retry.RetryableError(err) // for the others
		}
	})
}

// free returns nil if the place of the entry is free, ErrPresent if the entry is
// there, and ErrTaken if another one is.
func (p ipPool) free(keys map[string]string, r reaper.Record) error {
	ip, err := addressAt(p.prefix, r.Key)
	if err != nil {
		return fmt.Errorf("the record of %s in %s: %w", r.Key, r.Pool, err)
	}
	if ip.String() != r.IP {
		return fmt.Errorf("the record of %s in %s: it is of %q, and in this pool that is %s", r.Key, r.Pool, r.IP, ip)
	}
	key, held := keys[r.Key]
	if !held {
		return nil
	}
	entry := p.allocations[key]
	if key == r.Key && sameJSON(entry, r.Stored) {
		return reaper.ErrPresent
	}
	var now v1alpha1.IPAllocation
	if err := kube.Decode(entry, &now); err != nil {
		now.PodRef = "" // an entry that only its text describes
	}
	return takenBy(now.PodRef, entry)
}

// keys returns the key of each allocation by the offset that the plugin
// understands by it. It takes +7 and 007 for 7, too (toIPReservationList in its
// pkg/storage/kubernetes). What is no offset is there as it is.
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

// additions is the patch that adds the entries to the pool as it was read. Without
// the test an add would replace what is there.
func (p ipPool) additions(entries map[int]reaper.Record) []operation {
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

// dismiss answers for the entries that break the schema of the pool, and takes them
// out of pending. It reports whether there were any.
func dismiss(pending map[int]reaper.Record, refusal error, errs []error) bool {
	before := len(pending)
	for i, r := range pending {
		field := "spec.allocations." + r.Key
		if slices.ContainsFunc(causes(refusal), func(c metav1.StatusCause) bool {
			return c.Field == field || strings.HasPrefix(c.Field, field+".")
		}) {
			errs[i] = fmt.Errorf("the API server would not accept the entry: %w", refusal)
			delete(pending, i)
		}
	}
	return len(pending) < before
}
