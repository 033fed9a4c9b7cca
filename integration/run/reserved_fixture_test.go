package run_test

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	reserved    = "held Protected kept"
	reservedIPs = `  reservedIPs: # follows the backends of a policy
    resources:
    - resource: {group: network.example.com, version: v1alpha1, resource: reservedips}
      address: .status.ips[*]
      pod: .spec.pod
      ttl: .spec.ttl
      deletedAt: .status.deletedAt
      deleteExpired: true
    - resource: {group: network.example.com, version: v1alpha1, resource: clusterreservedips}
      address: .spec.ip
      ttl: .spec.ttl
`
	deletion = "delete reservedips" // what the reaper asks the API server for
)

// objects is a client for the objects of the shop, or of the cluster.
func (f *fixture) objects(kind string) dynamic.ResourceInterface {
	client := f.Dynamic.Resource(schema.GroupVersionResource{
		Group: "network.example.com", Version: "v1alpha1", Resource: strings.ToLower(kind) + "s",
	})
	if kind == "ReservedIP" {
		return client.Namespace(shop)
	}
	return client
}

// reserve creates an object from its fields, and gives it its status.
func (f *fixture) reserve(kind, name, fields string) {
	f.Helper()
	f.must(f.tryReserve(kind, name, fields))
}

// tryReserve is reserve for hooks, which must not end the test.
func (f *fixture) tryReserve(kind, name, fields string) error {
	var o unstructured.Unstructured
	if err := o.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"network.example.com/v1alpha1","kind":%q,%s}`, kind, fields)); err != nil {
		return err
	}
	o.SetName(name)
	now, err := f.objects(kind).Create(f.Context(), &o, metav1.CreateOptions{})
	status := o.Object["status"]
	if err != nil || status == nil || kind != "ReservedIP" {
		return err
	}
	now.Object["status"] = status
	_, err = f.objects(kind).UpdateStatus(f.Context(), now, metav1.UpdateOptions{})
	return err
}

// wantObjects fails the test unless the objects of the shop that are left are these.
func (f *fixture) wantObjects(want ...string) {
	f.Helper()
	list, err := f.objects("ReservedIP").List(f.Context(), metav1.ListOptions{})
	f.must(err)
	var got []string
	for _, o := range list.Items {
		got = append(got, o.GetName())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		f.Errorf("objects %v are left, want %v", got, want)
	}
}

// ago is a time in the past, as objects tell it.
func ago(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
