package reservedips

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

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
