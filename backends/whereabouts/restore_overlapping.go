package whereabouts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// maxSingleReads is the number of overlapping reservations up to which Record reads
// them one by one. If there are more, it lists all.
const maxSingleReads = 20

// Record implements ipam.Backend. It rereads the objects, because the token has only their UID,
// version and spec.
func (b *Overlapping) Record(ctx context.Context, rs []ipam.Allocation) ([]json.RawMessage, error) {
	wanted := make(map[string]int, len(rs)) // indices, by pool
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
		_, err := list(ctx, b.client, overlappingResource, keep)
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

// Restore implements ipam.Backend. It creates the object again, which fails if one of that name
// exists. If the release was interrupted, the object still exists with a tombstone: Restore
// puts its spec back.
func (b *Overlapping) Restore(ctx context.Context, pool string, rs []ipam.Record, permit ipam.Permit) []error {
	good, errs := checkRecords(pool, rs, readRecorded)
	for i, r := range good {
		errs[i] = b.restore(ctx, pool, r, permit)
	}
	return errs
}

// find compares the stored object with the recorded one. It returns nil if there is none.
func (b *Overlapping) find(ctx context.Context, pool string, r recorded) error {
	now, err := get(ctx, b.client, pool)
	switch {
	case gone(err, overlappingResource, pool):
		return nil
	case err != nil:
		return kube.Transient(err)
	}
	return r.compare(now)
}

// checkGiven returns an error if the network of the reservation gives its address to no pod.
func (b *Overlapping) checkGiven(r recorded) error {
	if r.inUse {
		return nil
	}
	b.mu.Lock()
	ranges := rangesAt(place{network: cmp.Or(r.name.network, unnamed)}, b.ranges)
	b.mu.Unlock()
	return checkGiven(r.name.ip, ranges)
}

// restore puts back one object. If it may not, it says what is in its place.
func (b *Overlapping) restore(ctx context.Context, pool string, r recorded, permit ipam.Permit) error {
	if refused := cmp.Or(b.checkGiven(r), permit()); refused != nil {
		return cmp.Or(b.find(ctx, pool, r), refused)
	}
	namespace, _ := splitPool(pool)
	_, err := kube.SendOnce(ctx, onResource(b.client.Post(), overlappingResource).Namespace(namespace), r.body)
	err = kube.Denied(err, overlappingKind+" "+pool)
	switch {
	case kube.Gone(err, "namespaces", namespace):
		return fmt.Errorf("%w: its namespace is gone", ipam.ErrTaken)
	case !apierrors.IsAlreadyExists(err):
		return kube.Unsure(kube.Transient(err))
	}
	now, err := get(ctx, b.client, pool)
	if err == nil {
		if err = cmp.Or(r.compare(now), permit()); err != nil {
			return err
		}
		err = kube.Unsure(kube.Transient(b.putBack(ctx, pool, now)))
	}
	if gone(err, overlappingResource, pool) {
		return fmt.Errorf("%w: the object existed a moment ago and is gone", ipam.ErrAgain)
	}
	return kube.Transient(err)
}

// compare returns nil if the stored object is the tombstone of the recorded one, whose
// spec can be put back. It returns ErrPresent if the object is the recorded one, an error that
// wraps ErrDeleting for one that is being deleted, and one that wraps ErrTaken for any other.
func (r recorded) compare(now object) error {
	if err := now.Metadata.Deleting(); err != nil {
		return fmt.Errorf("%w: restore it once it is gone", err)
	}
	if was, err := replaced(now); err == nil && sameJSON(was, r.spec) {
		return nil
	}
	owner := unnamedPool(now).Allocations[0].Owner.Pod
	switch {
	case sameJSON(now.Spec, r.spec):
		return ipam.ErrPresent
	case owner != ipam.PodRef{}:
		return takenBy(owner.String(), nil)
	default:
		return takenBy("", now.Spec)
	}
}

// A recorded is the object that Overlapping.Restore creates.
type recorded struct {
	body json.RawMessage
	spec json.RawMessage // the object's spec
	name reading         // the one that has the record's address

	inUse bool // see ipam.Record
}

// readRecorded decodes a record, and replaces a tombstone with the old spec. It returns an
// error for a record that Record cannot have returned for a released object.
func readRecorded(r ipam.Record) (recorded, error) {
	var o object
	var fields map[string]any
	if err := cmp.Or(kube.Decode(r.Stored, &o), kube.Decode(r.Stored, &fields)); err != nil {
		return recorded{}, fmt.Errorf("the stored object: %w", err)
	}
	listed := unnamedPool(o).Allocations[0]
	names := readings(o.Metadata.Name)
	named := slices.IndexFunc(names, func(n reading) bool { return n.ip.String() == r.IP })
	switch {
	case o.pool() != r.Pool || o.Metadata.Name != r.Key:
		return recorded{}, fmt.Errorf("the stored object is %s, not the one of the record", o.pool())
	case named < 0:
		return recorded{}, fmt.Errorf("the address %q of the record is not the one in the object's name", r.IP)
	case listed.Owner.Pod.Namespace == "":
		return recorded{}, errors.New("the stored object names no pod")
	}
	kube.RemoveServerMetadata(fields)
	spec := o.Spec
	if listed.Interrupted {
		spec, _ = replaced(o) // else it would not be interrupted
		unstructured.RemoveNestedField(fields, "metadata", "annotations", specAnnotation)
	}
	fields["spec"] = spec
	body, err := json.Marshal(fields)
	return recorded{body, spec, names[named], r.InUse}, err
}
