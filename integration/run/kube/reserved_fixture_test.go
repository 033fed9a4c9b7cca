package kube_test

import (
	"context"
	"fmt"
	"testing"

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
	wide = reservedips.Resource{
		Resource: reservedips.ResourceName{Group: "network.example.com", Version: "v1alpha1", Resource: "clusterreservedips"},
		Address:  ".spec.ip", Pod: ".spec.pod", TTL: ".spec.ttl",
	}
)

// A reservedFixture is the cluster without reserved IPs. When the test ends, it deletes those that
// the test made.
type reservedFixture struct{ *fixture }

func newReservedFixture(t *testing.T) *reservedFixture {
	t.Helper()
	f := &reservedFixture{newFixture(t)}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		for _, p := range []reservedips.Resource{spaced, wide} {
			list, err := f.objects(p).List(ctx, metav1.ListOptions{})
			f.must(err)
			for _, o := range list.Items {
				if len(o.GetFinalizers()) > 0 {
					o.SetFinalizers(nil)
					_, err := f.objects(p).Update(ctx, &o, metav1.UpdateOptions{})
					f.must(err)
				}
			}
			f.must(f.objects(p).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
		}
	})
	return f
}

// reserved returns an administrator's protector over the resources.
func (f *reservedFixture) reserved(policies ...reservedips.Resource) *reservedips.Protector {
	f.Helper()
	return f.reservedAs(f.Config, policies...)
}

func (f *reservedFixture) reservedAs(config *rest.Config, policies ...reservedips.Resource) *reservedips.Protector {
	f.Helper()
	client, err := kube.RawClient(config)
	f.must(err)
	p, err := reservedips.New(client, policies)
	f.must(err)
	return p
}

// list is Protections, but must succeed.
func (f *reservedFixture) list(p *reservedips.Protector) []ipam.Protection {
	f.Helper()
	all, err := p.Protections(f.Context())
	f.must(err)
	return all
}

// only returns the only object.
func (f *reservedFixture) only(p *reservedips.Protector) ipam.Protection {
	f.Helper()
	all := f.list(p)
	if len(all) != 1 {
		f.Fatalf("Protections = %+v, want one", all)
	}
	return all[0]
}

// objects returns a client for the objects of a resource: of the test's namespace or of the
// cluster.
func (f *reservedFixture) objects(p reservedips.Resource) dynamic.ResourceInterface {
	client := f.Dynamic.Resource(schema.GroupVersionResource(p.Resource))
	if p.Resource == spaced.Resource {
		return client.Namespace(f.namespace)
	}
	return client
}

// write creates an object from its fields, with its status.
func (f *reservedFixture) write(p reservedips.Resource, name, fields string) {
	f.Helper()
	kind := map[reservedips.ResourceName]string{spaced.Resource: "ReservedIP", wide.Resource: "ClusterReservedIP"}[p.Resource]
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
func (f *reservedFixture) remove(p reservedips.Resource, name string) {
	f.Helper()
	f.must(f.objects(p).Delete(f.Context(), name, metav1.DeleteOptions{}))
}
