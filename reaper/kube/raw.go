package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"
)

// RawClient returns a client for any path of any API group. Its answers are the JSON that
// the API server sent.
func RawClient(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // to decode errors
	raw := rest.CopyConfig(config)
	raw.ContentType, raw.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	raw.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.UnversionedRESTClientFor(raw)
}

// Send makes a request and returns the body of the answer. If the API server refuses the
// request, the error has the reason. rest.Result.Raw alone would leave the reason in the
// body.
func Send(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// ListRaw reads every object of a list as the API server sends it, by quorum reads.
// request returns a new request for the list on each call.
func ListRaw(ctx context.Context, request func() *rest.Request) ([]json.RawMessage, error) {
	return listRaw(ctx, request, func(item json.RawMessage) json.RawMessage { return item })
}

// listRaw is ListRaw. It reduces the objects page by page, so that it does not hold all of
// them in full.
func listRaw[T any](ctx context.Context, request func() *rest.Request, reduce func(json.RawMessage) T) ([]T, error) {
	return Pages(ctx, func(ctx context.Context, token string) ([]T, string, error) {
		r := request().Param("limit", fmt.Sprint(pageSize))
		if token != "" {
			r = r.Param("continue", token)
		}
		data, err := Send(ctx, r)
		if err != nil {
			return nil, "", err
		}
		var page struct {
			Metadata metav1.ListMeta   `json:"metadata"`
			Items    []json.RawMessage `json:"items"`
		}
		if err := Decode(data, &page); err != nil {
			return nil, "", fmt.Errorf("decode: %w", err)
		}
		if page.Metadata.ResourceVersion == "" {
			return nil, "", errors.New("the answer is not a list: it has no resourceVersion")
		}
		if page.Items == nil {
			return nil, "", errors.New("the answer is not a list: it has no items")
		}
		reduced := make([]T, len(page.Items))
		for i, item := range page.Items {
			reduced[i] = reduce(item)
		}
		return reduced, page.Metadata.Continue, nil
	})
}

// Decode reads JSON case-sensitively, as the API server does, and keeps integers exact.
// It drops the fields that into does not have, so a decoded object must never be written
// back.
func Decode(data []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}
