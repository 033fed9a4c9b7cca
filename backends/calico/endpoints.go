package calico

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// Endpoints implements ipam.Endpointer. In etcd, Calico keeps a WorkloadEndpoint for each sandbox, and
// one that outlives its sandbox gives the next pod with the address its policy (calico 6997). In the
// Kubernetes datastore, the pods are the endpoints.
func (b *Backend) Endpoints(ctx context.Context, as []*ipam.Allocation) ([]string, error) {
	store, err := b.datastore(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(as))
	errs := each(len(as), func(i int) error {
		name := endpointName(as[i])
		if name == "" {
			return nil
		}
		stored, err := store.endpoint(ctx, as[i].Owner.Pod.Namespace, name)
		switch {
		case errors.Is(err, errGone):
			return nil
		case err != nil:
			return err
		}
		if endpointHas(stored, as[i]) {
			names[i] = name
		}
		return nil
	})
	return names, errors.Join(errs...)
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

// endpointHas reports whether a WorkloadEndpoint is of the sandbox of an allocation and has its address.
// One of a later sandbox is not left over.
func endpointHas(stored []byte, a *ipam.Allocation) bool {
	var fields struct {
		Spec struct {
			Sandbox  string   `json:"containerID"`
			Networks []string `json:"ipNetworks"`
		} `json:"spec"`
	}
	return kube.Decode(stored, &fields) == nil && fields.Spec.Sandbox == a.Owner.Sandbox &&
		slices.ContainsFunc(fields.Spec.Networks, func(text string) bool {
			network, err := netip.ParsePrefix(text)
			return err == nil && network.IsSingleIP() && ipam.Shown(network.Addr()) == a.IP
		})
}

// endpoint implements datastore.
func (kubernetes) endpoint(context.Context, string, string) ([]byte, error) { return nil, errGone }

// endpoint implements datastore.
func (s etcd) endpoint(ctx context.Context, namespace, name string) ([]byte, error) {
	o, err := s.key(ctx, resourcePrefix+"workloadendpoints/"+namespace+"/"+name)
	return o.raw, err
}
