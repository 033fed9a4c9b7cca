package whereabouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sethvargo/go-retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// maxSingleReads is the number of overlapping reservations up to which Record reads
// them one by one. If there are more, it lists all.
const maxSingleReads = 20

// Record implements reaper.Backend. It reads again the objects that are not plain, because
// the token has only their version and spec.
func (b *Overlapping) Record(ctx context.Context, rs []reaper.Allocation) ([]json.RawMessage, error) {
	records := make([]json.RawMessage, len(rs))
	var rest []reaper.Allocation
	var where []int // their places
	for i, r := range rs {
		if records[i] = b.plainRecord(r); records[i] == nil {
			rest, where = append(rest, r), append(where, i)
		}
	}
	stored, err := b.stored(ctx, rest)
	if err != nil {
		return nil, err
	}
	for n, r := range rest {
		if now, there := stored[r.Pool]; there && now.token == r.Token {
			records[where[n]] = now.data
		}
	}
	return records, nil
}

// A storedObject is an object as it is stored, with its token.
type storedObject struct {
	token string
	data  json.RawMessage
}

// stored reads the objects of the allocations that exist, by the names of their pools.
func (b *Overlapping) stored(ctx context.Context, rs []reaper.Allocation) (map[string]storedObject, error) {
	wanted, stored := make(map[string]bool, len(rs)), make(map[string]storedObject, len(rs))
	for _, r := range rs {
		wanted[r.Pool] = true
	}
	keep := func(item json.RawMessage) struct{} {
		var o object
		if kube.Decode(item, &o) == nil && wanted[o.pool()] { // an unreadable object is not the listed one
			stored[o.pool()] = storedObject{token(o), item}
		}
		return struct{}{}
	}
	if len(rs) > maxSingleReads {
		_, err := listReduced(ctx, b.client, overlappingResource, keep)
		return stored, err
	}
	items, err := b.getEach(ctx, rs)
	for _, item := range items {
		keep(item)
	}
	return stored, err
}

// getEach reads the objects one by one.
func (b *Overlapping) getEach(ctx context.Context, rs []reaper.Allocation) ([]json.RawMessage, error) {
	var items []json.RawMessage
	for _, r := range rs {
		var item json.RawMessage
		err := kube.Patiently(ctx, func(ctx context.Context) (err error) {
			item, err = getRaw(ctx, b.client, overlappingResource, r.Pool)
			return err
		})
		switch {
		case err == nil:
			items = append(items, item)
		case !gone(err, overlappingResource, r.Pool):
			return nil, fmt.Errorf("read the overlapping reservation %s: %w", r.Pool, err)
		}
	}
	return items, nil
}

// Restore implements reaper.Backend. It creates the object again, which fails if
// an object of its name exists. If the release was interrupted, the object still
// exists with a tombstone: Restore puts its spec back.
func (b *Overlapping) Restore(ctx context.Context, pool string, rs []reaper.Record) []error {
	wanted := make(map[string]recorded, 1)
	good, errs := checkRecords(OverlappingName, pool, rs, func(r reaper.Record) (err error) {
		wanted[r.Key], err = readRecorded(r)
		return err
	})
	for i, r := range good {
		errs[i] = b.restore(ctx, pool, wanted[r.Key])
	}
	return errs
}

// restore puts back one object.
func (b *Overlapping) restore(ctx context.Context, pool string, r recorded) error {
	namespace, _ := splitPool(pool)
	unsure := false // an answer to a write was lost, so the stored object may be ours
	again := func(err error) error {
		err = retryable(err)
		unsure = unsure || errors.Is(err, reaper.ErrAgain)
		return err
	}
	return retry.Do(ctx, restoreBackoff(), func(ctx context.Context) error {
		err := b.client.Post().Namespace(namespace).Resource(overlappingResource).
			MaxRetries(0).Body([]byte(r.body)).Do(ctx).Error()
		err = kube.Denied(err, overlappingKind+" "+pool)
		switch {
		case err == nil:
			return nil
		case kube.Gone(err, "namespaces", namespace):
			return fmt.Errorf("%w: its namespace is gone", reaper.ErrTaken)
		case !apierrors.IsAlreadyExists(err):
			return again(err)
		}
		now, err := get(ctx, b.client, overlappingResource, pool)
		if gone(err, overlappingResource, pool) {
			return retry.RetryableError(fmt.Errorf("%w: the object existed a moment ago and is gone", reaper.ErrAgain))
		}
		if err != nil {
			return retryable(err)
		}
		err = r.compare(now)
		if err == nil {
			err := b.putBack(ctx, pool, now)
			if gone(err, overlappingResource, pool) {
				err = fmt.Errorf("%w: the object existed a moment ago and is gone", reaper.ErrAgain)
			}
			return again(err)
		}
		if unsure && errors.Is(err, reaper.ErrPresent) {
			return nil
		}
		return err
	})
}

// Compare implements reaper.Backend. It reads the objects one by one.
func (b *Overlapping) Compare(ctx context.Context, pool string, rs []reaper.Record) []error {
	wanted := make(map[string]recorded, 1)
	good, errs := checkRecords(OverlappingName, pool, rs, func(r reaper.Record) (err error) {
		wanted[r.Key], err = readRecorded(r)
		return err
	})
	for i, r := range good {
		errs[i] = retry.Do(ctx, restoreBackoff(), func(ctx context.Context) error {
			now, err := get(ctx, b.client, overlappingResource, pool)
			if gone(err, overlappingResource, pool) {
				return nil
			}
			if err != nil {
				return retryable(err)
			}
			return wanted[r.Key].compare(now)
		})
	}
	return errs
}

// compare returns nil if the stored object is the tombstone of the recorded one, whose
// spec can be put back. It returns ErrPresent if the object is the recorded one, and an
// error that wraps ErrTaken for any other.
func (r recorded) compare(now object) error {
	if was, err := replaced(now); err == nil && sameJSON(was, r.spec) {
		return nil
	}
	owner := overlappingPool(now, nil).Allocations[0].Owner.Pod
	switch {
	case sameJSON(now.Spec, r.spec):
		return reaper.ErrPresent
	case owner != reaper.PodRef{}:
		return takenBy(owner.String(), nil)
	default:
		return takenBy("", now.Spec)
	}
}
