// Package reservedips is the backend for the operator's own resources that protect addresses
// while their pod is gone. Every resource is a pool, and every object an allocation. An object
// is released after the addresses that it protects.
package reservedips

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Name is the name of the backend.
const Name = "reservedIPs"

// A Backend reads the resources of a policy that protect addresses, by quorum reads. A Backend
// is safe for concurrent use.
type Backend struct {
	client    rest.Interface
	resources []reservedResource
}

// New returns the backend over the resources, in the order of the policy. The client is a
// kube.RawClient.
func New(client rest.Interface, resources []Resource) (*Backend, error) {
	b := &Backend{client: client}
	for i, one := range resources {
		r, err := newReservedResource(one)
		if err != nil {
			return nil, fmt.Errorf("backends.reservedIPs.resources[%d].%w", i, err)
		}
		b.resources = append(b.resources, r)
	}
	return b, nil
}

// A ReservedIP is an object that protects addresses while their pod is gone, as an allocation. The
// policy names its resource.
type ReservedIP struct {
	ipam.Allocation
	ipam.Protection
	Stored json.RawMessage // the whole object
}

// Name implements ipam.Backend.
func (*Backend) Name() string { return Name }

// List implements ipam.Backend. Every resource is a pool, and every object an
// allocation.
func (b *Backend) List(ctx context.Context) iter.Seq2[ipam.Pool, error] {
	return func(yield func(ipam.Pool, error) bool) {
		all, err := b.All(ctx)
		if err != nil {
			yield(ipam.Pool{}, err)
			return
		}
		var pools []ipam.Pool
		for _, r := range all {
			if r.Unreadable != "" && !yield(ipam.Pool{}, r.objectError()) {
				return
			}
			if len(pools) == 0 || pools[len(pools)-1].Name != r.Pool {
				pools = append(pools, ipam.Pool{Name: r.Pool})
			}
			last := &pools[len(pools)-1]
			last.Allocations = append(last.Allocations, r.allocation())
		}
		for _, u := range pools {
			if !yield(u, nil) {
				return
			}
		}
	}
}

// objectError returns the error for an object that cannot be decoded.
func (r ReservedIP) objectError() error {
	return &ipam.ObjectError{Object: r.Pool + " " + r.Key, Err: fmt.Errorf("%s; correct it, or delete it", r.Unreadable)}
}

// allocation returns the object as the engine lists it. It has an IP if it protects exactly one.
func (r ReservedIP) allocation() ipam.Allocation {
	protects := r.Protection // on its own, so that the stored object is not kept with it
	r.Protects = &protects
	if len(r.IPs) == 1 {
		r.IP = r.IPs[0]
	}
	return r.Allocation
}

// Release implements ipam.Backend.
func (b *Backend) Release(ctx context.Context, ws []ipam.Warrant) []error {
	errs := make([]error, len(ws))
	for i, w := range ws {
		r, err := w.Allocation()
		if err == nil {
			err = b.Delete(ctx, ReservedIP{Allocation: r})
		}
		errs[i] = err
	}
	return errs
}

// Record implements ipam.Backend. It rereads the objects.
func (b *Backend) Record(ctx context.Context, rs []ipam.Allocation) ([]json.RawMessage, error) {
	all, err := b.All(ctx)
	if err != nil {
		return nil, err
	}
	stored := make(map[[3]string]json.RawMessage, len(all))
	for _, r := range all {
		stored[[3]string{r.Pool, r.Key, r.Token}] = r.Stored
	}
	records := make([]json.RawMessage, len(rs))
	for i, r := range rs {
		records[i] = stored[[3]string{r.Pool, r.Key, r.Token}]
	}
	return records, nil
}

// All reads every object of every resource, even those that cannot be decoded. It omits an
// object with neither an address nor a pod, which protects nothing yet. If all objects of a
// resource have neither, that is an error: if the paths are wrong, the protected addresses are
// unknown.
func (b *Backend) All(ctx context.Context) ([]ReservedIP, error) {
	var all []ReservedIP
	var errs []error
	for i, r := range b.resources {
		some, err := b.list(ctx, r)
		if err != nil {
			errs = append(errs, fmt.Errorf("backends.reservedIPs.resources[%d]: %w", i, err))
		}
		all = append(all, some...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return all, nil
}

// list reads the objects of one resource.
func (b *Backend) list(ctx context.Context, r reservedResource) ([]ReservedIP, error) {
	items, err := kube.ListRaw(ctx, b.client, func(get *rest.Request) *rest.Request { return r.request(get, "") })
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("list %s: the API server does not serve it: install it, or remove it from the policy: %w", r.pool, err)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("list %s: grant list on it to ip-reaper, or remove it from the policy: %w", r.pool, err)
	case err != nil:
		return nil, fmt.Errorf("list %s: %w", r.pool, err)
	}
	return r.readAll(items)
}

// Delete deletes one object if it is still as listed. If finalizers keep the object, the error
// wraps ipam.ErrDeleting.
func (b *Backend) Delete(ctx context.Context, reserved ReservedIP) error {
	r, err := b.resource(reserved.Pool)
	if err != nil {
		return err
	}
	uid, version, _ := strings.Cut(reserved.Token, "/")
	if uid == "" || version == "" {
		// A deletion without preconditions would delete any object of that name.
		return fmt.Errorf("delete %s %s: %q is not a token", r.pool, reserved.Key, reserved.Token)
	}
	namespace, name := splitKey(reserved.Key)
	err = kube.Delete(ctx, r.request(b.client.Delete(), namespace).Name(name), uid, version)
	if err = kube.Deleted(err, r.Resource, name); err != nil {
		return fmt.Errorf("delete %s %s: %w", r.pool, reserved.Key, err)
	}
	return nil
}

// resource returns the resource of a pool. If the policy names it twice, either
// will do: they differ only in the fields that are read.
func (b *Backend) resource(pool string) (reservedResource, error) {
	for _, r := range b.resources {
		if r.pool == pool {
			return r, nil
		}
	}
	return reservedResource{}, fmt.Errorf("%s is not one of the policy's backends.reservedIPs.resources", pool)
}

// splitKey splits a key into namespace and name. The namespace is empty if the key
// has none.
func splitKey(key string) (namespace, name string) {
	namespace, name, namespaced := strings.Cut(key, "/")
	if !namespaced {
		return "", key
	}
	return namespace, name
}
