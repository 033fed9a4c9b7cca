package kube

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// metadataOnly asks for only the metadata of objects.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// ListMetadata reads only the metadata of every object of a list. The client is a RawClient,
// and narrow is as in ListRaw. An object that cannot be decoded has no name.
func ListMetadata(ctx context.Context, client rest.Interface, narrow func(get *rest.Request) *rest.Request) ([]metav1.ObjectMeta, error) {
	ask := func(get *rest.Request) *rest.Request { return narrow(get).SetHeader("Accept", metadataOnly) }
	return ListReduced(ctx, client, ask, func(item json.RawMessage) metav1.ObjectMeta {
		var object struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
		}
		_ = Decode(item, &object) // it has no name then
		return object.Metadata
	})
}
