package run_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The resources in kit/cluster/reserved-ips.yaml, as in a policy.
var (
	spaced = reservedips.Resource{
		Resource: reservedips.ResourceName{Group: "network.example.com", Version: "v1alpha1", Resource: "reservedips"},
		Address:  ".status.ips[*]", Pod: ".spec.pod", TTL: ".spec.ttl", DeletedAt: ".status.deletedAt",
	}
	clusterWide = reservedips.Resource{
		Resource: reservedips.ResourceName{Group: "network.example.com", Version: "v1alpha1", Resource: "clusterreservedips"},
		Address:  ".spec.ip", Pod: ".spec.pod", TTL: ".spec.ttl",
	}
)

// reserved returns an administrator's protector over the resources.
func (f *fixture) reserved(policies ...reservedips.Resource) *reservedips.Protector {
	f.Helper()
	return f.reservedAs(f.Config, policies...)
}

func (f *fixture) reservedAs(config *rest.Config, policies ...reservedips.Resource) *reservedips.Protector {
	f.Helper()
	client, err := kube.RawClient(config)
	f.must(err)
	p, err := reservedips.New(client, policies)
	f.must(err)
	return p
}

// list is Protections, but must succeed.
func (f *fixture) list(p *reservedips.Protector) []ipam.Protection {
	f.Helper()
	all, err := p.Protections(f.Context())
	f.must(err)
	return all
}

// only returns the only object.
func (f *fixture) only(p *reservedips.Protector) ipam.Protection {
	f.Helper()
	all := f.list(p)
	if len(all) != 1 {
		f.Fatalf("Protections = %+v, want one", all)
	}
	return all[0]
}

// objects returns a client for the objects of a resource: of the namespace home or of
// the cluster.
func (f *fixture) objects(p reservedips.Resource) dynamic.ResourceInterface {
	client := f.Dynamic.Resource(schema.GroupVersionResource(p.Resource))
	if p.Resource == spaced.Resource {
		return client.Namespace(home)
	}
	return client
}

// write creates an object from its fields, with its status.
func (f *fixture) write(p reservedips.Resource, name, fields string) {
	f.Helper()
	kind := map[reservedips.ResourceName]string{spaced.Resource: "ReservedIP", clusterWide.Resource: "ClusterReservedIP"}[p.Resource]
	var o unstructured.Unstructured
	f.must(o.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"network.example.com/v1alpha1","kind":%q,%s}`, kind, fields)))
	o.SetName(name)
	now, err := f.objects(p).Create(f.Context(), &o, metav1.CreateOptions{})
	f.must(err)
	if status := o.Object["status"]; status != nil && p.Resource == spaced.Resource {
		now.Object["status"] = status
		_, err = f.objects(p).UpdateStatus(f.Context(), now, metav1.UpdateOptions{})
		f.must(err)
	}
}

// remove deletes an object without a precondition.
func (f *fixture) remove(p reservedips.Resource, name string) {
	f.Helper()
	f.must(f.objects(p).Delete(f.Context(), name, metav1.DeleteOptions{}))
}
