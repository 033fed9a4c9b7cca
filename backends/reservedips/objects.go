package reservedips

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A Backend reads the resources of a policy that reserve addresses, always by
// quorum reads. Its methods may be called
// concurrently.
type Backend struct {
	client    rest.Interface
	resources []reservedResource
}

// New returns the reserved addresses of the resources, in the order of
// the policy. It asks the API server nothing.
func New(config *rest.Config, resources []Resource) (*Backend, error) {
	client, err := kube.RawClient(config)
	if err != nil {
		return nil, err
	}
	s := &Backend{client: client}
	for i, one := range resources {
		r, err := newReservedResource(one)
		if err != nil {
			return nil, fmt.Errorf("backends.reservedIPs.resources[%d].%w", i, err)
		}
		s.resources = append(s.resources, r)
	}
	return s, nil
}

// All reads every object of every resource. An object in which neither the address nor
// the pod is there reserves nothing yet, and is passed over. Where that is so in
// all objects of a resource, it is an error: the paths are wrong, or nobody has
// filled anything in, and then nobody knows what is kept. The error names one
// object of each resource that could not be understood.
func (s *Backend) All(ctx context.Context) ([]ReservedIP, error) {
	var all []ReservedIP
	var errs []error
	for i, r := range s.resources {
		some, err := s.list(ctx, r)
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
func (s *Backend) list(ctx context.Context, r reservedResource) ([]ReservedIP, error) {
	items, err := kube.ListRaw(ctx, func() *rest.Request { return r.request(s.client.Get(), "") })
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("list %s: the API server does not serve it: install it, or take it out of the policy: %w", r.pool, err)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("list %s: grant list on it to the reaper, or take it out of the policy: %w", r.pool, err)
	case err != nil:
		return nil, fmt.Errorf("list %s: %w", r.pool, err)
	}
	return r.readAll(items)
}

// Delete deletes one object if it is still as it was listed. Where finalizers keep the object, it is
// deleted as soon as those are gone, and that is an answer of nil.
func (s *Backend) Delete(ctx context.Context, reserved ReservedIP) error {
	r, err := s.resource(reserved.Pool)
	if err != nil {
		return err
	}
	uid, version, _ := strings.Cut(reserved.Token, "/")
	if uid == "" || version == "" {
		// A deletion without conditions would hit whatever is there now.
		return fmt.Errorf("delete %s %s: %q is no token", r.pool, reserved.Key, reserved.Token)
	}
	body, err := json.Marshal(metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: new(types.UID(uid)), ResourceVersion: &version},
	})
	if err != nil {
		return err
	}
	namespace, name := splitKey(reserved.Key)
	_, err = kube.Send(ctx, r.request(s.client.Delete(), namespace).Name(name).MaxRetries(0).Body(body))
	if err = kube.Deleted(err, r.Resource, name); err != nil {
		return fmt.Errorf("delete %s %s: %w", r.pool, reserved.Key, err)
	}
	return nil
}

// resource returns what the policy says of a pool. If it has the resource twice,
// either will do: they differ in what is read.
func (s *Backend) resource(pool string) (reservedResource, error) {
	for _, r := range s.resources {
		if r.pool == pool {
			return r, nil
		}
	}
	return reservedResource{}, fmt.Errorf("%s is not among the backends.reservedIPs.resources of the policy", pool)
}

// splitKey undoes key.
func splitKey(key string) (namespace, name string) {
	namespace, name, namespaced := strings.Cut(key, "/")
	if !namespaced {
		return "", key
	}
	return namespace, name
}
