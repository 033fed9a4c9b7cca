package whereabouts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A tombstone stands in a reservation's podref while it is being released. No
// pod can have that name, so every pod that asks for the address sees a foreign
// owner and takes another one. The annotation keeps the owner for the case that
// it turns out to be alive, or that the release is cut short.
const (
	tombstone       = "_ip-reaper/_released"
	ownerAnnotation = "ip-reaper/owner"
)

// token is what a reservation is compared by: the object and its version.
func token(o object) string { return o.Metadata.UID + "/" + o.Metadata.ResourceVersion }

// Release implements reaper.Backend, for the one entry of its pool:
//
//  1. no pool may hold the address for this owner any more: a reservation that
//     goes before its pool entry lets another range take the address, and the
//     ADD of the owner, should it come back, would spin on its old entry;
//  2. the tombstone is put in, if the object is what was listed;
//  3. pools and owner are looked at again: whoever saw the reservation as its own
//     before step 2 exists by now, or has left an entry in a pool;
//  4. the object is deleted, if it still is what step 2 made of it; or, if the
//     owner or an entry of its is there, it gets its name back.
//
// What a crash leaves after step 2 is listed as interrupted and taken up there.
func (b *Overlapping) Release(ctx context.Context, pool string, ws []reaper.Warrant) []error {
	errs := make([]error, len(ws))
	for i, w := range ws {
		errs[i] = b.release(ctx, pool, w)
	}
	return errs
}

// release is the protocol above.
func (b *Overlapping) release(ctx context.Context, pool string, w reaper.Warrant) error {
	r, err := w.Allocation()
	if err != nil {
		return err
	}
	if _, again := b.begun.Load(pool); !again {
		// This only spares a tombstone that would not last: an older look will do.
		held, err := b.heldBy(ctx, r, time.Now().Add(-10*time.Second))
		if err != nil {
			return kube.Transient(err)
		}
		if held != "" {
			return fmt.Errorf("%w: pool %s still holds the address for the same pod", reaper.ErrKept, held)
		}
		if r, err = w.Allocation(); err != nil {
			return err // it took too long to read the pools
		}
	}
	b.begun.Store(pool, true)
	buried, err := b.bury(ctx, pool, r)
	if gone(err, overlappingResource, pool) {
		return nil
	}
	if err != nil {
		return kube.Transient(err)
	}

	held, err := b.heldBy(ctx, r, time.Now())
	if err != nil {
		return kube.Transient(err)
	}
	w, err = w.Renew(ctx)
	if err == nil && held != "" {
		// The owner was back for a moment, before the tombstone.
		err = fmt.Errorf("%w: pool %s holds the address for the same pod again", reaper.ErrKept, held)
	}
	if errors.Is(err, reaper.ErrReturned) || errors.Is(err, reaper.ErrKept) {
		if back := b.unbury(ctx, pool, buried, r.Owner.Pod); back != nil {
			return kube.Transient(back)
		}
		return err
	}
	if err == nil {
		_, err = w.Allocation()
	}
	if err != nil {
		return err
	}
	return kube.Transient(b.remove(ctx, pool, buried))
}

// bury puts the tombstone into the object as it was listed, and returns what it
// is then. It takes up a tombstone that stands there already, for the same
// owner.
func (b *Overlapping) bury(ctx context.Context, pool string, r reaper.Allocation) (object, error) {
	if !r.Interrupted {
		var listed object
		listed.Metadata.UID, listed.Metadata.ResourceVersion, _ = strings.Cut(r.Token, "/")
		o, err := b.patch(ctx, pool, listed, tombstone, r.Owner.Pod.String())
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
		return object{}, fmt.Errorf("%w: a conflict with nobody", reaper.ErrAgain)
	default:
		return object{}, reaper.ErrChanged
	}
}

// unbury puts the owner back where the tombstone stands.
func (b *Overlapping) unbury(ctx context.Context, pool string, buried object, owner reaper.PodRef) error {
	_, err := b.patch(ctx, pool, buried, owner.String(), nil)
	if gone(err, overlappingResource, pool) {
		return nil
	}
	return err
}

// patch sets the owner and the annotation of exactly this version of an object,
// and nothing else of it. A nil annotation removes it.
func (b *Overlapping) patch(ctx context.Context, pool string, version object, podRef string, annotation any) (object, error) {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid":             version.Metadata.UID,
			"resourceVersion": version.Metadata.ResourceVersion,
			"annotations":     map[string]any{ownerAnnotation: annotation},
		},
		"spec": map[string]any{"podref": podRef},
	})
	if err != nil {
		return object{}, err
	}
	namespace, name := splitPool(pool)
	data, err := kube.Send(ctx, b.client.Patch(types.MergePatchType).Namespace(namespace).Resource(overlappingResource).Name(name).
		MaxRetries(0).Body(body))
	if err != nil {
		return object{}, err
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
	return err
}

// Mend implements reaper.Mender: it puts the owner back where a tombstone
// stands.
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
		return nil // somebody else mended it
	}
	return b.unbury(ctx, r.Pool, now, r.Owner.Pod)
}
