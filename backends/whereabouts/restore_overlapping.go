package whereabouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sethvargo/go-retry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// maxSingleReads is the number of overlapping reservations up to which Record reads
// them one by one. If there are more, it lists all.
const maxSingleReads = 20

// Record implements ipam.Backend. It reads the objects again, because the token has only
// their version and spec.
func (b *Overlapping) Record(ctx context.Context, rs []ipam.Allocation) ([]json.RawMessage, error) {
	wanted := make(map[string]int, len(rs)) // the places, by pool
	for i, r := range rs {
		wanted[r.Pool] = i
	}
	records := make([]json.RawMessage, len(rs))
	keep := func(item json.RawMessage) bool {
		var o object
		if kube.Decode(item, &o) == nil { // an unreadable object is not the listed one
			if i, is := wanted[o.pool()]; is && token(o) == rs[i].Token {
				records[i] = item
				return true
			}
		}
		return false
	}
	if len(rs) > maxSingleReads {
		_, err := listReduced(ctx, b.client, overlappingResource, keep)
		return records, err
	}
	for _, r := range rs {
		err := kube.Patiently(ctx, func(ctx context.Context) error {
			item, err := getRaw(ctx, b.client, overlappingResource, r.Pool)
			if err == nil {
				keep(item)
			}
			return err
		})
		if err != nil && !gone(err, overlappingResource, r.Pool) {
			return nil, fmt.Errorf("read the overlapping reservation %s: %w", r.Pool, err)
		}
	}
	return records, nil
}

// Restore implements ipam.Backend. It creates the object again, which fails if
// an object of its name exists. If the release was interrupted, the object still
// exists with a tombstone: Restore puts its spec back.
func (b *Overlapping) Restore(ctx context.Context, pool string, rs []ipam.Record) []error {
	return eachRecord(pool, rs, func(r recorded) error { return b.restore(ctx, pool, r) })
}

// Compare implements ipam.Backend. It reads the objects one by one.
func (b *Overlapping) Compare(ctx context.Context, pool string, rs []ipam.Record) []error {
	return eachRecord(pool, rs, func(r recorded) error {
		return retry.Do(ctx, restoreBackoff(), func(ctx context.Context) error {
			now, err := get(ctx, b.client, overlappingResource, pool)
			if gone(err, overlappingResource, pool) {
				return nil
			}
			if err != nil {
				return retryable(err)
			}
			return r.compare(now)
		})
	})
}

// eachRecord answers each record of an object: by do, if Record can have returned it.
func eachRecord(pool string, rs []ipam.Record, do func(recorded) error) []error {
	wanted := make(map[string]recorded, 1)
	good, errs := checkRecords(OverlappingName, pool, rs, func(r ipam.Record) (err error) {
		wanted[r.Key], err = readRecorded(r)
		return err
	})
	for i, r := range good {
		errs[i] = do(wanted[r.Key])
	}
	return errs
}

// restore puts back one object.
func (b *Overlapping) restore(ctx context.Context, pool string, r recorded) error {
	namespace, _ := splitPool(pool)
	unsure := false // an answer to a write was lost, so the stored object may be ours
	again := func(err error) error {
		err = retryable(err)
		unsure = unsure || errors.Is(err, ipam.ErrAgain)
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
			return fmt.Errorf("%w: its namespace is gone", ipam.ErrTaken)
		case !apierrors.IsAlreadyExists(err):
			return again(err)
		}
		now, err := get(ctx, b.client, overlappingResource, pool)
		if gone(err, overlappingResource, pool) {
			return retry.RetryableError(fmt.Errorf("%w: the object existed a moment ago and is gone", ipam.ErrAgain))
		}
		if err != nil {
			return retryable(err)
		}
		err = r.compare(now)
		if err == nil {
			err := b.putBack(ctx, pool, now)
			if gone(err, overlappingResource, pool) {
				err = fmt.Errorf("%w: the object existed a moment ago and is gone", ipam.ErrAgain)
			}
			return again(err)
		}
		if unsure && errors.Is(err, ipam.ErrPresent) {
			return nil
		}
		return err
	})
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
		return ipam.ErrPresent
	case owner != ipam.PodRef{}:
		return takenBy(owner.String(), nil)
	default:
		return takenBy("", now.Spec)
	}
}
