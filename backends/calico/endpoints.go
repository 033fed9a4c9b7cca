package calico

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Endpoints implements ipam.Endpointer. In etcd, Calico keeps a WorkloadEndpoint for each sandbox, and
// one that outlives its sandbox gives the next pod with the address its policy (calico 6997). In the
// Kubernetes datastore, the pods stand for their endpoints: none is read there.
func (b *Backend) Endpoints(ctx context.Context, as []*ipam.Allocation) []ipam.Endpoint {
	store, err := b.datastore(ctx)
	endpoints := make([]ipam.Endpoint, len(as))
	errs := each(len(as), func(i int) error {
		name := endpointName(as[i])
		if err != nil || name == "" {
			return err
		}
		stored, err := store.endpoint(ctx, as[i].Owner.Pod.Namespace, name)
		switch {
		case errors.Is(err, errGone):
			return nil
		case errors.Is(err, errInPod):
			endpoints[i].InPod = true
			return nil
		case err != nil:
			return err
		}
		endpoints[i], err = readEndpoint(name, stored)
		return err
	})
	for i, err := range errs {
		endpoints[i].Err = err
	}
	return endpoints
}

// endpointName returns the name of the WorkloadEndpoint of an allocation's pod; empty if the store does
// not say all that it is made of.
func endpointName(a *ipam.Allocation) string {
	node := a.Owner.Node
	if a.StoreNode != nil {
		node = a.StoreNode.Name
	}
	if node == "" || a.Owner.Sandbox == "" || !a.NamesPod() {
		return ""
	}
	escape := strings.NewReplacer("-", "--")
	return escape.Replace(node) + "-k8s-" + escape.Replace(a.Owner.Pod.Name) + "-eth0"
}

// readEndpoint decodes a WorkloadEndpoint.
func readEndpoint(name string, stored []byte) (ipam.Endpoint, error) {
	var fields struct {
		Spec struct {
			Sandbox  string   `json:"containerID"`
			Networks []string `json:"ipNetworks"`
		} `json:"spec"`
	}
	if err := kube.Decode(stored, &fields); err != nil {
		return ipam.Endpoint{}, fmt.Errorf("decode WorkloadEndpoint %s: %w", name, err)
	}
	e := ipam.Endpoint{Name: name, Sandbox: fields.Spec.Sandbox}
	for _, text := range fields.Spec.Networks {
		if network, err := netip.ParsePrefix(text); err == nil && network.IsSingleIP() {
			e.Addresses = append(e.Addresses, ipam.Shown(network.Addr()))
		}
	}
	return e, nil
}

// errInPod says that a store has no endpoints, since the pods stand for them.
var errInPod = errors.New("the pod stands for its endpoint")

// endpoint implements datastore.
func (kubernetes) endpoint(context.Context, string, string) ([]byte, error) { return nil, errInPod }

// endpoint implements datastore.
func (s etcd) endpoint(ctx context.Context, namespace, name string) ([]byte, error) {
	o, err := s.key(ctx, resourcePrefix+"workloadendpoints/"+namespace+"/"+name)
	return o.raw, err
}
