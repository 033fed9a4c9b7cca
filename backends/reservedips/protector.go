// Package reservedips reads the operator's own resources whose objects keep addresses while their
// pod is gone. It writes none of them.
package reservedips

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Name is the name of the protector.
const Name = "reservedIPs"

// A Protector reads the resources of a policy that keep addresses, by quorum reads. It is safe for
// concurrent use.
type Protector struct {
	client    rest.Interface
	resources []reservedResource
}

// New returns the protector over the resources, in the order of the policy. The client is a
// kube.RawClient.
func New(client rest.Interface, resources []Resource) (*Protector, error) {
	p := &Protector{client: client}
	for i, one := range resources {
		r, err := newReservedResource(one)
		if err != nil {
			return nil, fmt.Errorf("backends.reservedIPs.resources[%d].%w", i, err)
		}
		p.resources = append(p.resources, r)
	}
	return p, nil
}

// Name implements ipam.Protector.
func (*Protector) Name() string { return Name }

// Protections implements ipam.Protector. It omits an object with neither an address nor a pod,
// which protects nothing yet. If all objects of a resource have neither, that is an error: if the
// paths are wrong, the protected addresses are unknown.
func (p *Protector) Protections(ctx context.Context) ([]ipam.Protection, error) {
	var all []ipam.Protection
	var errs []error
	for i, r := range p.resources {
		some, err := p.list(ctx, r)
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
func (p *Protector) list(ctx context.Context, r reservedResource) ([]ipam.Protection, error) {
	items, err := kube.ListRaw(ctx, p.client, func(get *rest.Request) *rest.Request {
		return get.AbsPath("/apis/" + r.Group + "/" + r.Version).Resource(r.Resource)
	})
	var hint string
	switch {
	case apierrors.IsNotFound(err):
		hint = "the API server does not serve it: install it, or remove it from the policy: "
	case apierrors.IsForbidden(err):
		hint = "grant list on it to ip-reaper, or remove it from the policy: "
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %s%w", r.name, hint, err)
	}
	return r.readAll(items)
}
