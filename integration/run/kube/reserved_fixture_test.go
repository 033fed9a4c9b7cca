package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/ip-reaper/ip-reaper/backends/reservedips"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// The resources in kit/cluster/reserved-ips.yaml, as in a policy.
var (
	spaced = reservedips.Resource{
		Resource: reservedips.ResourceName{Group: "network.example.com", Version: "v1alpha1", Resource: "reservedips"},
		Address:  ".status.ips[*]", Pod: ".spec.pod", TTL: ".spec.ttl", DeletedAt: ".status.deletedAt", DeleteExpired: true,
	}
	wide = reservedips.Resource{
		Resource: reservedips.ResourceName{Group: "network.example.com", Version: "v1alpha1", Resource: "clusterreservedips"},
		Address:  ".spec.ip", Pod: ".spec.pod", TTL: ".spec.ttl",
	}
)

// Their pools.
const (
	spacedPool = "reservedips.v1alpha1.network.example.com"
	widePool   = "clusterreservedips.v1alpha1.network.example.com"
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

// reserved returns an administrator's backend for the resources.
func (f *reservedFixture) reserved(policies ...reservedips.Resource) *reservedips.Backend {
	f.Helper()
	return f.reservedAs(f.Config, policies...)
}

func (f *reservedFixture) reservedAs(config *rest.Config, policies ...reservedips.Resource) *reservedips.Backend {
	f.Helper()
	client, err := kube.RawClient(config)
	f.must(err)
	r, err := reservedips.New(client, policies)
	f.must(err)
	return r
}

// forbidden returns the backend of an account that may not make these requests.
func (f *reservedFixture) forbidden(requests ...string) *reservedips.Backend {
	f.Helper()
	p, err := proxy.Start(f.Config)
	f.must(err)
	f.Cleanup(p.Stop)
	p.Before(proxy.On(requests...), proxy.Always(proxy.Forbidden()))
	return f.reservedAs(p.Config(f.Config), spaced)
}

// list is All, but must succeed.
func (f *reservedFixture) list(r *reservedips.Backend) []reservedips.ReservedIP {
	f.Helper()
	all, err := r.All(f.Context())
	f.must(err)
	return all
}

// only returns the only object.
func (f *reservedFixture) only(r *reservedips.Backend) reservedips.ReservedIP {
	f.Helper()
	all := f.list(r)
	if len(all) != 1 {
		f.Fatalf("List = %+v, want one", all)
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

// change sets a field of an object, by its path.
func (f *reservedFixture) change(p reservedips.Resource, name string, value any, path ...string) {
	f.Helper()
	o, err := f.objects(p).Get(f.Context(), name, metav1.GetOptions{})
	f.must(err)
	f.must(unstructured.SetNestedField(o.Object, value, path...))
	if path[0] == "status" {
		_, err = f.objects(p).UpdateStatus(f.Context(), o, metav1.UpdateOptions{})
	} else {
		_, err = f.objects(p).Update(f.Context(), o, metav1.UpdateOptions{})
	}
	f.must(err)
}

// remove deletes an object without a precondition.
func (f *reservedFixture) remove(p reservedips.Resource, name string) {
	f.Helper()
	f.must(f.objects(p).Delete(f.Context(), name, metav1.DeleteOptions{}))
}

// gone reports whether the API server has no such object.
func (f *reservedFixture) gone(p reservedips.Resource, name string) bool {
	f.Helper()
	_, err := f.objects(p).Get(f.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		f.Fatal(err)
	}
	return err != nil
}

// record returns the journal's record of an object.
func record(r reservedips.ReservedIP) ipam.Record {
	return ipam.Record{Backend: reservedips.Name, Pool: r.Pool, Key: r.Key, Stored: r.Stored}
}

// settled returns an object as stored, without the fields that every creation sets.
func (f *reservedFixture) settled(stored json.RawMessage) string {
	f.Helper()
	var object, metadata map[string]json.RawMessage
	f.must(json.Unmarshal(stored, &object))
	f.must(json.Unmarshal(object["metadata"], &metadata))
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		delete(metadata, field)
	}
	var err error
	object["metadata"], err = json.Marshal(metadata)
	f.must(err)
	whole, err := json.Marshal(object)
	f.must(err)
	return string(whole)
}

// configMap creates a ConfigMap in the test's namespace.
func (f *reservedFixture) configMap(name string, data map[string]string) {
	f.Helper()
	_, err := f.Kube.CoreV1().ConfigMaps(f.namespace).Create(f.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
	f.must(err)
}
