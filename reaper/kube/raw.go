// Package kube asks the API server for what a backend needs: it reads whole lists, classifies
// errors, and limits the number of concurrent requests.
package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// RawClient returns a client for any path of any API group. Its answers are the JSON that
// the API server sent. It remembers whether lists are read whole.
func RawClient(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // to decode errors
	raw := rest.CopyConfig(config)
	raw.ContentType, raw.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	raw.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(raw)
	if err != nil {
		return nil, err
	}
	return Remember(client), nil
}

// Send makes a request and returns the body of the answer. If the API server refuses the
// request, the error has the reason, which rest.Result.Raw alone would leave in the body.
func Send(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, unread(err)
	}
	return result.Raw()
}

// unread returns the error of a request without what client-go adds if it says that files lack the answer.
func unread(err error) error {
	var lack *ipam.UnreadError
	if errors.As(err, &lack) {
		return lack
	}
	return err
}

// ListRaw reads every object of a list as the API server sends it, by quorum reads. narrow
// turns a GET request into one for the list, and is called for each request.
func ListRaw(ctx context.Context, client rest.Interface, narrow func(get *rest.Request) *rest.Request) ([]json.RawMessage, error) {
	return ListReduced(ctx, client, narrow, func(item json.RawMessage) json.RawMessage { return item })
}

// ListReduced is ListRaw, but reduces the objects as they arrive, so that it does not hold all
// of them in full. It calls reduce from one goroutine at a time, again for an object that is
// read again, and even for one that is gone when the list is read again.
func ListReduced[T any](ctx context.Context, client rest.Interface, narrow func(get *rest.Request) *rest.Request, reduce func(json.RawMessage) T) ([]T, error) {
	request := func() *rest.Request { return narrow(client.Get()) }
	return ReadList(ctx, client, request, Form[T]{
		json: func(object json.RawMessage) (T, error) { return reduce(object), nil },
	})
}

// Read reads what the API server has at a path: an object, or what it says about itself, as at /apis.
func Read(ctx context.Context, client rest.Interface, into any, path ...string) error {
	return Patiently(ctx, func(ctx context.Context) error {
		data, err := Send(ctx, client.Get().AbsPath(path...))
		if err != nil {
			return err
		}
		return Decode(data, into)
	})
}

// Decode reads JSON case-sensitively, as the API server does, and keeps integers exact.
// It drops the fields that into does not have, so a decoded object must never be written
// back.
func Decode(data []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}

// DecodeKnown is Decode for what is stored at a path. It also returns the path of a field that into does
// not have, or that is there twice: the first by name; empty if there is none.
func DecodeKnown(data []byte, at string, into any) (unknown string, err error) {
	others, err := kjson.UnmarshalStrict(data, into)
	for _, other := range others {
		name := other.Error()
		if field, ok := errors.AsType[kjson.FieldError](other); ok {
			name = field.FieldPath()
		}
		if path := at + "." + name; unknown == "" || path < unknown {
			unknown = path
		}
	}
	return unknown, err
}

// Metadata is the part of an object's metadata that all backends read.
type Metadata struct {
	Namespace         string      `json:"namespace"`
	Name              string      `json:"name"`
	UID               string      `json:"uid"`
	ResourceVersion   string      `json:"resourceVersion"`
	CreationTimestamp metav1.Time `json:"creationTimestamp"`
	DeletionTimestamp *string     `json:"deletionTimestamp"`
	Finalizers        []string    `json:"finalizers"`
}

// Deleting returns an error that wraps ipam.ErrDeleting if the object is being deleted. It names
// the finalizers that keep the object.
func (m Metadata) Deleting() error {
	if m.DeletionTimestamp == nil {
		return nil
	}
	return ipam.Deleting(m.Finalizers)
}

// RemoveServerMetadata removes from an object the metadata that the API server fills in, and
// refuses or replaces in a new object. The ownerReferences stay: they name owners by UID, so that
// the object lives as long as it would have.
func RemoveServerMetadata(object map[string]any) {
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "managedFields", "selfLink",
	} {
		unstructured.RemoveNestedField(object, "metadata", field)
	}
}

// SendOnce is Send for a write with a body in JSON. client-go would wait inside the request when the
// API server asks it to, and meanwhile the warrants would expire, so it makes the request only once.
func SendOnce(ctx context.Context, request *rest.Request, body []byte) ([]byte, error) {
	return Send(ctx, request.SetHeader("Content-Type", runtime.ContentTypeJSON).MaxRetries(0).Body(body))
}

// Delete deletes exactly one version of an object, with SendOnce. If finalizers keep the object, the
// error wraps ipam.ErrDeleting.
func Delete(ctx context.Context, request *rest.Request, uid, version string) error {
	body, err := json.Marshal(metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: new(types.UID(uid)), ResourceVersion: &version},
	})
	if err != nil {
		return err
	}
	answer, err := SendOnce(ctx, request, body)
	if err != nil {
		return err
	}
	var object struct { // if it is not gone yet; otherwise the answer is a status
		Metadata Metadata `json:"metadata"`
	}
	if err := Decode(answer, &object); err != nil {
		return fmt.Errorf("decode the answer to the deletion: %w", err)
	}
	return object.Metadata.Deleting()
}
