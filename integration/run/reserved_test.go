package run_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/world"
)

const protected = "held Protected kept"

var reservedResource = schema.GroupVersionResource{Group: "network.example.com", Version: "v1alpha1", Resource: "reservedips"}

// An object is released after the addresses that it keeps, and not while a store that could hold
// one of them cannot be read (promise 2).
func TestReservedIPStaysWhileAStoreCannotBeRead(t *testing.T) {
	f := newFixture(t)
	f.network = wide
	// The pod lives but shows nothing yet.
	ip := f.leak("web-0")
	f.pod("web-0", cluster.Phase("Pending"))
	objects := f.Dynamic.Resource(reservedResource).Namespace(shop)
	object, err := objects.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": reservedResource.GroupVersion().String(), "kind": "ReservedIP",
		"metadata": map[string]any{"name": "web"}, "spec": map[string]any{"ttl": "0s"},
	}}, metav1.CreateOptions{})
	f.must(err)
	object.Object["status"] = map[string]any{"ips": []any{ip}}
	_, err = objects.UpdateStatus(t.Context(), object, metav1.UpdateOptions{})
	f.must(err)
	for _, list := range []string{"list ippools", "list overlappingrangeipreservations"} {
		f.toReaper.Reset()
		f.toReaper.Before(proxy.On(list), proxy.Always(proxy.Forbidden()))
		for range 2 {
			got := said(f.reap(reap.ExitPartial, atOnce+world.ReservedIPs).Report)["object web"]
			if got != protected && got != "inUse AddressInUse kept" {
				t.Errorf("without %s, the object is %s", list, got)
			}
		}
	}
	f.toReaper.Reset()
	f.wantSaid(f.reap(reap.ExitDone, atOnce+world.ReservedIPs).Report, decisions{"web-0": present, "object web": "inUse AddressInUse kept"})
	_, err = objects.Get(t.Context(), "web", metav1.GetOptions{})
	f.must(err)
}
