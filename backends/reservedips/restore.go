package reservedips

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Restore implements ipam.Backend. The restored object gets a new UID. If the
// API server ignores the status in a creation, a second write restores the status.
// That write needs the right to update it; without it, an address in the status is
// not protected.
//
// If an object with the same content exists, the answer is ErrPresent, even if its labels or
// its status differ. But if its status is empty, it gets the recorded one.
func (b *Backend) Restore(ctx context.Context, pool string, records []ipam.Record) []error {
	errs := make([]error, len(records))
	for i, record := range records {
		if err := b.restore(ctx, pool, record); err != nil {
			errs[i] = fmt.Errorf("restore %s %s: %w", pool, record.Key, err)
		}
	}
	return errs
}

// Compare implements ipam.Backend. It reads the objects one by one.
func (b *Backend) Compare(ctx context.Context, pool string, records []ipam.Record) []error {
	errs := make([]error, len(records))
	for i, record := range records {
		r, before, _, err := b.recorded(pool, record)
		if err == nil {
			_, err = b.compare(ctx, r, record.Key, before)
		}
		if err != nil && !errors.Is(err, errAbsent) {
			errs[i] = fmt.Errorf("compare %s %s: %w", pool, record.Key, err)
		}
	}
	return errs
}

// recorded decodes a record: the object as it was stored, and the body that creates it again.
func (b *Backend) recorded(pool string, record ipam.Record) (r reservedResource, before storedObject, creation []byte, err error) {
	if r, err = b.resource(pool); err != nil {
		return r, before, nil, err
	}
	if before, err = r.readRecord(record); err != nil {
		return r, before, nil, err
	}
	fields := runtime.DeepCopyJSON(before.fields)
	kube.RemoveServerMetadata(fields)
	creation, err = json.Marshal(fields)
	return r, before, creation, err
}

// restore puts one object back.
func (b *Backend) restore(ctx context.Context, pool string, record ipam.Record) error {
	r, before, body, err := b.recorded(pool, record)
	if err != nil {
		return err
	}
	namespace, name := splitKey(record.Key)
	// Without strict validation, the API server would silently drop a field that is no longer
	// in the schema.
	data, err := kube.SendOnce(ctx, r.request(b.client.Post(), namespace).Param("fieldValidation", "Strict"), body)
	switch {
	case apierrors.IsAlreadyExists(err):
		now, err := b.compare(ctx, r, record.Key, before)
		if err != nil {
			return err
		}
		return b.restoreStatus(ctx, r, namespace, name, before, now)
	case kube.Gone(err, "namespaces", namespace), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("%w: its namespace is gone: %w", ipam.ErrTaken, err)
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

// errAbsent says that no object has a record's name.
var errAbsent = fmt.Errorf("%w: the object existed a moment ago and is gone", ipam.ErrAgain)

// compare reads the object with a record's name. It returns no error if only its status must be
// restored, errAbsent if there is no object, and otherwise the answer.
func (b *Backend) compare(ctx context.Context, r reservedResource, key string, before storedObject) (now storedObject, err error) {
	namespace, name := splitKey(key)
	err = kube.Patiently(ctx, func(ctx context.Context) error {
		data, err := kube.Send(ctx, r.request(b.client.Get(), namespace).Name(name))
		if err != nil {
			return err
		}
		now, err = readStored(data)
		return err
	})
	switch meta := now.Metadata; {
	case kube.Gone(err, r.Resource, name):
		return now, errAbsent
	case err != nil:
		return now, err
	case !reflect.DeepEqual(before.content, now.content):
		return now, fmt.Errorf("%w: by the object with the uid %s", ipam.ErrTaken, meta.UID)
	case meta.Deleting() != nil:
		return now, fmt.Errorf("%w: restore it once it is gone", meta.Deleting())
	case reflect.DeepEqual(before.status, now.status):
		return now, ipam.ErrPresent
	case now.status == nil:
		return now, nil
	}
	return now, fmt.Errorf("%w, with a different status", ipam.ErrPresent)
}

// restoreStatus writes the recorded status into the object. The write applies only to the
// version that was read.
func (b *Backend) restoreStatus(ctx context.Context, r reservedResource, namespace, name string, before, now storedObject) error {
	now.fields["status"] = before.fields["status"]
	body, err := json.Marshal(now.fields)
	if err != nil {
		return err
	}
	request := r.request(b.client.Put(), namespace).Name(name).SubResource("status").Param("fieldValidation", "Strict")
	if _, err := kube.SendOnce(ctx, request, body); err != nil {
		return fmt.Errorf("the object is back, but without its status: put %s/status: %w", r.Resource, kube.Transient(err))
	}
	return nil
}
