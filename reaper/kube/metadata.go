package kube

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// metadataOnly asks for the metadata of the objects alone.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// ListMetadata reads the metadata of every object of a list, without the rest of them.
// request returns a new request for the list, of a RawClient, on each call. An object that
// cannot be decoded has no name.
func ListMetadata(ctx context.Context, request func() *rest.Request) ([]metav1.ObjectMeta, error) {
	ask := func() *rest.Request { return request().SetHeader("Accept", metadataOnly) }
	return listRaw(ctx, ask, func(item json.RawMessage) metav1.ObjectMeta {
		var object struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
		}
		_ = Decode(item, &object) // it has no name then
		return object.Metadata
	})
}
