package reservedips

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Restore implements reaper.Recorder. The restored object gets a new UID. If the
// API server ignores the status in a creation, a second write restores the status.
// That write needs the right to update it; without it, an address in the status is
// not protected.
//
// If an object of the same content exists, the answer is ErrPresent, even if its
// labels or its status differ. But if its status is empty, it gets the recorded
// one.
func (b *Backend) Restore(ctx context.Context, pool string, records []reaper.Record) []error {
	errs := make([]error, len(records))
	for i, record := range records {
		if err := b.restore(ctx, pool, record); err != nil {
			errs[i] = fmt.Errorf("restore %s %s: %w", pool, record.Key, err)
		}
	}
	return errs
}

// restore puts one object back.
func (b *Backend) restore(ctx context.Context, pool string, record reaper.Record) error {
	r, err := b.resource(pool)
	if err != nil {
		return err
	}
	before, err := r.readRecord(record)
	if err != nil {
		return err
	}
	body, err := before.creation()
	if err != nil {
		return err
	}
	namespace, name := splitKey(record.Key)
	// Without strict validation, the API server would silently drop a field that
	// the schema does not have any more.
	data, err := kube.Send(ctx, r.request(b.client.Post(), namespace).Param("fieldValidation", "Strict").MaxRetries(0).Body(body))
	switch {
	case apierrors.IsAlreadyExists(err):
		return b.compare(ctx, r, record.Key, before)
	case kube.Gone(err, "namespaces", namespace), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("%w: its namespace is gone: %w", reaper.ErrTaken, err)
	case err != nil:
		return kube.Transient(err)
	}
	now, err := readStored(data)
	if err != nil {
		return err
	}
	if before.status == nil || reflect.DeepEqual(before.status, now.status) {
		return nil
	}
	return b.restoreStatus(ctx, r, namespace, name, before, now)
}

// compare returns the answer if an object of that name exists.
func (b *Backend) compare(ctx context.Context, r reservedResource, key string, before storedObject) error {
	namespace, name := splitKey(key)
	var now storedObject
	err := kube.Patiently(ctx, func(ctx context.Context) error {
		data, err := kube.Send(ctx, r.request(b.client.Get(), namespace).Name(name))
		if err != nil {
			return err
		}
		now, err = readStored(data)
		return err
	})
	switch meta := now.Metadata; {
	case kube.Gone(err, r.Resource, name):
		return fmt.Errorf("%w: the object existed a moment ago and is gone", reaper.ErrAgain)
	case err != nil:
		return err
	case !reflect.DeepEqual(before.content, now.content):
		return fmt.Errorf("%w: by the object with the uid %s", reaper.ErrTaken, meta.UID)
	case meta.Deleted != nil:
		return fmt.Errorf("the object is still being deleted, and waits for the finalizers %q: restore it when it is gone", meta.Finalizers)
	case reflect.DeepEqual(before.status, now.status):
		return reaper.ErrPresent
	case now.status == nil:
		return b.restoreStatus(ctx, r, namespace, name, before, now)
	}
	return fmt.Errorf("%w, with another status", reaper.ErrPresent)
}

// restoreStatus writes the recorded status into the object. The write is
// conditional on the version that was read.
func (b *Backend) restoreStatus(ctx context.Context, r reservedResource, namespace, name string, before, now storedObject) error {
	now.fields["status"] = before.fields["status"]
	body, err := json.Marshal(now.fields)
	if err != nil {
		return err
	}
	request := r.request(b.client.Put(), namespace).Name(name).SubResource("status").Param("fieldValidation", "Strict")
	if _, err := kube.Send(ctx, request.MaxRetries(0).Body(body)); err != nil {
		return fmt.Errorf("the object is back, but without its status: put %s/status: %w", r.Resource, kube.Transient(err))
	}
	return nil
}
