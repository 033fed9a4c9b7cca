package whereabouts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// token returns the token of an overlapping reservation: its UID, its version, and its spec,
// which stays the same as long as the version does.
func token(o object) string {
	var spec bytes.Buffer
	_ = json.Compact(&spec, o.Spec) // without a spec, there is nothing to compact, nor to decode
	return o.Metadata.UID + "/" + o.Metadata.ResourceVersion + "/" + spec.String()
}

// readToken returns the object of a token: its UID, version and spec.
func readToken(text string) (object, error) {
	parts := strings.SplitN(text, "/", 3)
	if len(parts) < 3 {
		return object{}, fmt.Errorf("%w: %q is not a token", ipam.ErrKept, text)
	}
	var o object
	o.Metadata.UID, o.Metadata.ResourceVersion, o.Spec = parts[0], parts[1], json.RawMessage(parts[2])
	return o, nil
}

// setTombstone puts a tombstone into the object if it is still as listed, and returns the
// resulting object. If the object already has a tombstone for the same owner, it returns that,
// unless the object is being deleted.
func (b *Overlapping) setTombstone(ctx context.Context, pool string, r ipam.Allocation) (object, error) {
	if !r.Interrupted {
		listed, err := readToken(r.Token)
		if err != nil {
			return object{}, err
		}
		// All other fields stay as they are. The API server refuses to patch another version.
		annotations := map[string]string{specAnnotation: string(listed.Spec)}
		o, err := b.patch(ctx, pool, types.MergePatchType, map[string]any{
			"metadata": map[string]any{
				"uid":             listed.Metadata.UID,
				"resourceVersion": listed.Metadata.ResourceVersion,
				"annotations":     annotations,
			},
			"spec": map[string]any{"podref": tombstone},
		})
		if err == nil {
			o.Metadata.Annotations = annotations
		}
		if !apierrors.IsConflict(err) {
			return o, err
		}
	}
	now, err := get(ctx, b.client, pool)
	if err != nil {
		return object{}, err
	}
	stands := unnamedPool(now).Allocations[0]
	switch {
	case stands.Interrupted && stands.Owner.Pod == r.Owner.Pod:
		return now, now.Metadata.Deleting()
	case token(now) == r.Token:
		return object{}, fmt.Errorf("%w: the API server reported a conflict, but the object is unchanged", ipam.ErrAgain)
	default:
		return object{}, ipam.ErrChanged
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

// putBack is like clearTombstone, but fails if the object is gone. The patch sets the uid and the
// version that the object has, so the API server refuses it if the object has changed since.
func (b *Overlapping) putBack(ctx context.Context, pool string, marked object) error {
	spec, err := replaced(marked)
	if err != nil {
		return err
	}
	quoted := func(text string) json.RawMessage { return json.RawMessage(strconv.Quote(text)) }
	_, err = b.patch(ctx, pool, types.JSONPatchType, []operation{
		{Op: "replace", Path: "/metadata/uid", Value: quoted(marked.Metadata.UID)},
		{Op: "replace", Path: "/metadata/resourceVersion", Value: quoted(marked.Metadata.ResourceVersion)},
		{Op: "replace", Path: "/spec", Value: spec},
		{Op: "remove", Path: "/metadata/annotations/" + strings.ReplaceAll(specAnnotation, "/", "~1")},
	})
	return err
}

// patch patches an object, and returns the result.
func (b *Overlapping) patch(ctx context.Context, pool string, kind types.PatchType, patch any) (o object, err error) {
	body, err := json.Marshal(patch)
	if err != nil {
		return object{}, err
	}
	namespace, name := splitPool(pool)
	data, err := kube.Send(ctx, onResource(b.client.Patch(kind), overlappingResource).Namespace(namespace).Name(name).
		MaxRetries(0).Body(body))
	if err != nil {
		return object{}, kube.Denied(err, overlappingKind+" "+pool)
	}
	return o, kube.Decode(data, &o)
}

// remove deletes exactly this version of the object. If finalizers keep it, the error wraps
// ipam.ErrDeleting. Its tombstone stays: an owner that came back would adopt what will be gone.
func (b *Overlapping) remove(ctx context.Context, pool string, version object) error {
	namespace, name := splitPool(pool)
	request := onResource(b.client.Delete(), overlappingResource).Namespace(namespace).Name(name)
	err := kube.Delete(ctx, request, version.Metadata.UID, version.Metadata.ResourceVersion)
	if gone(err, overlappingResource, pool) {
		return nil
	}
	return kube.Denied(err, overlappingKind+" "+pool)
}

// Mend implements ipam.Mender: it puts the old spec back if the object has a
// tombstone.
func (b *Overlapping) Mend(ctx context.Context, r ipam.Allocation) error {
	now, err := get(ctx, b.client, r.Pool)
	if gone(err, overlappingResource, r.Pool) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := now.Metadata.Deleting(); err != nil {
		return err
	}
	stands := unnamedPool(now).Allocations[0]
	if !stands.Interrupted || stands.Owner.Pod != r.Owner.Pod {
		return nil // another run has put the old spec back
	}
	return b.clearTombstone(ctx, r.Pool, now)
}

// A tombstone is the podref of an overlapping reservation while it is being released. No pod
// can have that name. So a pod that asks for the address sees a foreign owner and takes another
// address. The annotation keeps the whole old spec, which is put back if the owner turns out to
// be alive or the release is interrupted.
const (
	tombstone      = "_ip-reaper/_released"
	specAnnotation = "ip-reaper/spec"
)

// hasTombstone reports whether the spec of an overlapping reservation has a
// tombstone.
func hasTombstone(spec json.RawMessage) bool {
	if !bytes.Contains(spec, []byte(tombstone)) && !bytes.ContainsRune(spec, '\\') {
		return false // as almost always
	}
	var s v1alpha1.OverlappingRangeIPReservationSpec
	return kube.Decode(spec, &s) == nil && s.PodRef == tombstone
}

// replaced returns the spec that the tombstone of an object replaced. It returns an error if
// the object has no tombstone, or does not say whose it was: then the tombstone is left alone.
func replaced(o object) (json.RawMessage, error) {
	if !hasTombstone(o.Spec) {
		return nil, errors.New("it has no tombstone")
	}
	spec := json.RawMessage(o.Metadata.Annotations[specAnnotation])
	var s v1alpha1.OverlappingRangeIPReservationSpec
	if err := kube.Decode(spec, &s); err != nil || readOwner(s.PodRef).Namespace == "" || s.PodRef == tombstone {
		return nil, fmt.Errorf("its release has begun, and the annotation %s names no owner: set podref to namespace/name of the owner", specAnnotation)
	}
	return spec, nil
}
