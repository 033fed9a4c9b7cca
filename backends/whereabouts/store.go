// Package whereabouts has the two backends for the Whereabouts IPAM plugin
// (github.com/k8snetworkplumbingwg/whereabouts): Pools for the allocations of its IPPools, and
// Overlapping for its OverlappingRangeIPReservations. There are two because either can leak
// without the other.
//
// Both read and write objects as raw JSON. So an entry is compared and removed as stored,
// including fields unknown to this program.
package whereabouts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/k8snetworkplumbingwg/whereabouts/pkg/api/whereabouts.cni.cncf.io/v1alpha1"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The resources and kinds of the group whereabouts.cni.cncf.io. Messages use a
// resource's full name, because Calico has IPPools too.
const (
	poolResource        = "ippools"
	overlappingResource = "overlappingrangeipreservations"
	sliceResource       = "nodeslicepools"

	poolKind        = "IPPool"
	overlappingKind = "OverlappingRangeIPReservation"
	sliceKind       = "NodeSlicePool"
)

// An object has the decoded parts that all stored objects share.
type object struct {
	Metadata struct {
		kube.Metadata
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

// pool returns the name of the object's pool in reports: namespace/name.
func (o object) pool() string { return o.Metadata.Namespace + "/" + o.Metadata.Name }

// splitPool splits a pool's name into namespace and name.
func splitPool(pool string) (namespace, name string) {
	namespace, name, _ = strings.Cut(pool, "/")
	return namespace, name
}

// onResource directs a request to a resource of Whereabouts.
func onResource(request *rest.Request, resource string) *rest.Request {
	return request.AbsPath("/apis", v1alpha1.SchemeGroupVersion.String()).Resource(resource)
}

// list reads every object of a resource, in all namespaces, by quorum reads, and keeps only what
// reduce returns for each. It calls reduce more than once for an object that is read again. It
// returns an error that wraps ipam.ErrNotInstalled if the API server does not serve the resource.
func list[T any](ctx context.Context, client rest.Interface, resource string, reduce func(json.RawMessage) T) ([]T, error) {
	items, err := kube.ListReduced(ctx, client, func(get *rest.Request) *rest.Request { return onResource(get, resource) }, reduce)
	return items, kube.Listed(err, resource, v1alpha1.SchemeGroupVersion.Group)
}

// getRaw reads one object as stored, by a quorum read.
func getRaw(ctx context.Context, client rest.Interface, resource, pool string) (json.RawMessage, error) {
	namespace, name := splitPool(pool)
	return kube.Send(ctx, onResource(client.Get(), resource).Namespace(namespace).Name(name))
}

// get reads an overlapping reservation by a quorum read.
func get(ctx context.Context, client rest.Interface, pool string) (object, error) {
	data, err := getRaw(ctx, client, overlappingResource, pool)
	if err != nil {
		return object{}, err
	}
	var o object
	if err := kube.Decode(data, &o); err != nil {
		return object{}, fmt.Errorf("decode %s: %w", pool, err)
	}
	return o, nil
}

// gone reports whether the error is the API server's answer that this object does
// not exist.
func gone(err error, resource, pool string) bool {
	_, name := splitPool(pool)
	return kube.Gone(err, resource, name)
}

// readOwner parses a podref, which is namespace/name. Any other text becomes the name of a pod
// without a namespace: not an owner, but a report can show it.
func readOwner(podRef string) ipam.PodRef {
	namespace, name, ok := strings.Cut(podRef, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return ipam.PodRef{Name: podRef}
	}
	return ipam.PodRef{Namespace: namespace, Name: name}
}

// An ipPool is an IPPool as it was read, as far as it can be decoded.
type ipPool struct {
	object                                 // without the spec
	name        string                     // metadata.name
	prefix      netip.Prefix               // spec.range, with its address as written
	allocations map[string]json.RawMessage // by key: the entry as stored
	broken      error                      // why it cannot be decoded; nil if it can
	node        string                     // whose slice it is; empty if it is none, or if that is not certain
}

// readPool decodes an IPPool.
func readPool(data json.RawMessage) ipPool {
	var stored struct {
		object
		Spec struct {
			Range       string                     `json:"range"`
			Allocations map[string]json.RawMessage `json:"allocations"`
		} `json:"spec"`
	}
	err := kube.Decode(data, &stored)
	p := ipPool{object: stored.object, name: stored.Metadata.Name, allocations: stored.Spec.Allocations}
	if err != nil {
		p.broken = fmt.Errorf("decode: %w", err)
		return p
	}
	p.prefix, p.broken = parseRange(stored.Spec.Range)
	return p
}
