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

// Restore implements reaper.Recorder. The object that is back has another uid
// than it had. Its status is put back by a second write where the API server
// leaves it out of the first, which needs the right to update it: an address that
// stands in the status is not reserved without.
//
// An object of the same content that is there already is ErrPresent, whatever its
// labels and its status; one whose status is still empty gets it.
func (s *Backend) Restore(ctx context.Context, pool string, records []reaper.Record) []error {
	errs := make([]error, len(records))
	for i, record := range records {
		if err := s.restore(ctx, pool, record); err != nil {
			errs[i] = fmt.Errorf("restore %s %s: %w", pool, record.Key, err)
		}
	}
	return errs
}

// restore puts one object back.
func (s *Backend) restore(ctx context.Context, pool string, record reaper.Record) error {
	r, err := s.resource(pool)
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
	// What the schema does not know any more would be dropped without a word.
	data, err := kube.Send(ctx, r.request(s.client.Post(), namespace).Param("fieldValidation", "Strict").MaxRetries(0).Body(body))
	switch {
	case apierrors.IsAlreadyExists(err):
		return s.compare(ctx, r, record.Key, before)
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
	return s.restoreStatus(ctx, r, namespace, name, before, now)
}

// compare says what it means that there is an object of that name.
func (s *Backend) compare(ctx context.Context, r reservedResource, key string, before storedObject) error {
	namespace, name := splitKey(key)
	var now storedObject
	err := kube.Patiently(ctx, func(ctx context.Context) error {
		data, err := kube.Send(ctx, r.request(s.client.Get(), namespace).Name(name))
		if err != nil {
			return err
		}
		now, err = readStored(data)
		return err
	})
	switch meta := now.Metadata; {
	case kube.Gone(err, r.Resource, name):
		return fmt.Errorf("%w: it was there, and is gone again", reaper.ErrAgain)
	case err != nil:
		return err
	case !reflect.DeepEqual(before.content, now.content):
		return fmt.Errorf("%w: by the object with the uid %s", reaper.ErrTaken, meta.UID)
	case meta.Deleted != nil:
		return fmt.Errorf("it is still being deleted, and waits for the finalizers %q: restore it when it is gone", meta.Finalizers)
	case reflect.DeepEqual(before.status, now.status):
		return reaper.ErrPresent
	case now.status == nil:
		return s.restoreStatus(ctx, r, namespace, name, before, now)
	}
	return fmt.Errorf("%w, with another status", reaper.ErrPresent)
}

// restoreStatus gives the object the status that it had, if it is still as it is
// now.
func (s *Backend) restoreStatus(ctx context.Context, r reservedResource, namespace, name string, before, now storedObject) error {
	now.fields["status"] = before.fields["status"]
	body, err := json.Marshal(now.fields)
	if err != nil {
		return err
	}
	request := r.request(s.client.Put(), namespace).Name(name).SubResource("status").Param("fieldValidation", "Strict")
	if _, err := kube.Send(ctx, request.MaxRetries(0).Body(body)); err != nil {
		return fmt.Errorf("it is back, but without its status: put %s/status: %w", r.Resource, kube.Transient(err))
	}
	return nil
}
