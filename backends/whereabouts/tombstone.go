package whereabouts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// token returns the token of an overlapping reservation: its UID, its version, and
// its spec, which is the same as long as the version is.
func token(o object) string {
	var spec bytes.Buffer
	_ = json.Compact(&spec, o.Spec) // no spec at all has no token, and cannot be decoded either
	return o.Metadata.UID + "/" + o.Metadata.ResourceVersion + "/" + spec.String()
}

// readToken returns the object of a token: its UID, version and spec.
func readToken(text string) (object, error) {
	parts := strings.SplitN(text, "/", 3)
	if len(parts) < 3 {
		return object{}, fmt.Errorf("%w: its token %q is not one", reaper.ErrKept, text)
	}
	var o object
	o.Metadata.UID, o.Metadata.ResourceVersion, o.Spec = parts[0], parts[1], json.RawMessage(parts[2])
	return o, nil
}

// setTombstone puts the tombstone into the object as it was listed, and returns the
// object as it is then. If the object already has a tombstone for the same owner,
// it returns that.
func (b *Overlapping) setTombstone(ctx context.Context, pool string, r reaper.Allocation) (object, error) {
	if !r.Interrupted {
		listed, err := readToken(r.Token)
		if err != nil {
			return object{}, err
		}
		o, err := b.patch(ctx, pool, listed, map[string]any{"podref": tombstone}, map[string]any{specAnnotation: string(listed.Spec)})
		if err == nil {
			o.Metadata.Annotations = map[string]string{specAnnotation: string(listed.Spec)}
		}
		if !apierrors.IsConflict(err) {
			return o, err
		}
	}
	now, err := get(ctx, b.client, overlappingResource, pool)
	if err != nil {
		return object{}, err
	}
	stands := overlappingPool(now, nil).Allocations[0]
	switch {
	case stands.Interrupted && stands.Owner.Pod == r.Owner.Pod:
		return now, nil
	case token(now) == r.Token:
		return object{}, fmt.Errorf("%w: the API server reported a conflict, but the object is unchanged", reaper.ErrAgain)
	default:
		return object{}, reaper.ErrChanged
	}
}

// clearTombstone puts the spec back that the tombstone replaced.
func (b *Overlapping) clearTombstone(ctx context.Context, pool string, marked object) error {
	err := b.putBack(ctx, pool, marked)
	if gone(err, overlappingResource, pool) {
		return nil
	}
	return err
}

// putBack is clearTombstone for an object that must exist.
func (b *Overlapping) putBack(ctx context.Context, pool string, marked object) error {
	spec, err := replaced(marked)
	if err != nil {
		return err
	}
	change, err := specChange(marked.Spec, spec)
	if err != nil {
		return err
	}
	_, err = b.patch(ctx, pool, marked, change, map[string]any{keptIn(marked): nil})
	return err
}

// patch changes the spec and the annotations of exactly this version of an object,
// and nothing else. A nil field or annotation is removed.
func (b *Overlapping) patch(ctx context.Context, pool string, version object, spec, annotations map[string]any) (object, error) {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid":             version.Metadata.UID,
			"resourceVersion": version.Metadata.ResourceVersion,
			"annotations":     annotations,
		},
		"spec": spec,
	})
	if err != nil {
		return object{}, err
	}
	namespace, name := splitPool(pool)
	data, err := kube.Send(ctx, b.client.Patch(types.MergePatchType).Namespace(namespace).Resource(overlappingResource).Name(name).
		MaxRetries(0).Body(body))
	if err != nil {
		return object{}, kube.Denied(err, overlappingKind+" "+pool)
	}
	var o object
	return o, kube.Decode(data, &o)
}

// remove deletes exactly this version of the object.
func (b *Overlapping) remove(ctx context.Context, pool string, version object) error {
	namespace, name := splitPool(pool)
	uid := types.UID(version.Metadata.UID)
	err := b.client.Delete().Namespace(namespace).Resource(overlappingResource).Name(name).
		MaxRetries(0).Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
		UID: &uid, ResourceVersion: &version.Metadata.ResourceVersion,
	}}).Do(ctx).Error()
	if gone(err, overlappingResource, pool) {
		return nil
	}
	return kube.Denied(err, overlappingKind+" "+pool)
}

// Mend implements reaper.Mender: it puts the old spec back if the object has a
// tombstone.
func (b *Overlapping) Mend(ctx context.Context, r reaper.Allocation) error {
	now, err := get(ctx, b.client, overlappingResource, r.Pool)
	if gone(err, overlappingResource, r.Pool) {
		return nil
	}
	if err != nil {
		return err
	}
	stands := overlappingPool(now, nil).Allocations[0]
	if !stands.Interrupted || stands.Owner.Pod != r.Owner.Pod {
		return nil // another run has put the old spec back
	}
	return b.clearTombstone(ctx, r.Pool, now)
}
