package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
)

// Records have the keys that the API server and Calico give them.
func TestRecordsOfCalicoHaveTheirKeys(t *testing.T) {
	const s, e = size(1000), entry(61) // the second address of the second block
	handle := "k8s-pod-network." + e.sandbox()
	got := map[string]string{}
	for _, f := range []form{inKubernetes, inEtcd} {
		for kind, make := range map[string]func() (record, error){
			"block":    func() (record, error) { return f.blockRecord(1, s.content(1)) },
			"handle":   func() (record, error) { return f.handleRecord(e) },
			"affinity": func() (record, error) { return f.affinityRecord(1) },
		} {
			r, err := make()
			if err != nil {
				t.Fatal(err)
			}
			got[f.part+" "+kind] = r.key
			var object struct {
				Kind     string
				Metadata struct{ Name, UID, ResourceVersion string }
			}
			if err := json.Unmarshal(r.value, &object); err != nil {
				t.Fatal(err)
			}
			if (object.Metadata.UID == "") != f.etcd || (object.Kind == "") != f.etcd || object.Metadata.ResourceVersion != "" {
				t.Errorf("%s %s: %s", f.part, kind, r.value)
			}
		}
	}
	want := map[string]string{
		"calico block":         "/registry/crd.projectcalico.org/ipamblocks/10-0-0-64-26",
		"calico handle":        "/registry/crd.projectcalico.org/ipamhandles/" + handle,
		"calico affinity":      "/registry/crd.projectcalico.org/blockaffinities/node-1.example.internal-10-0-0-64-26",
		"calico-etcd block":    "/calico/ipam/v2/assignment/ipv4/block/10.0.0.64-26",
		"calico-etcd handle":   "/calico/ipam/v2/handle/" + handle,
		"calico-etcd affinity": "/calico/ipam/v2/host/node-1.example.internal/ipv4/block/10.0.0.64-26",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// The pod, its address, its sandbox and its node are those of the block's attribute.
func TestStoredPodHasTheAddressOfItsBlock(t *testing.T) {
	const e = entry(61)
	r, err := blockPodRecord(e)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.value) < 2000 || len(r.value) > 3000 {
		t.Errorf("the pod has %d bytes, want about 2,500", len(r.value))
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(r.value, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Status.PodIP != "10.0.0.65" || pod.Annotations[calico.PodIPAnnotation] != "10.0.0.65/32" {
		t.Fatalf("stored is %v", object)
	}
	a := size(1000).content(1).Attributes[1]
	want := attribute{"k8s-pod-network." + pod.Annotations[calico.ContainerIDAnnotation],
		owner{pod.Namespace, pod.Spec.NodeName, pod.Name, "2026-01-01 00:00:00 +0000 UTC"}}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("attribute (-pod +block):\n%s", diff)
	}
	r, err = endpointRecord(e)
	if want := "/calico/resources/v3/projectcalico.org/workloadendpoints/tenant-0/node--1.example.internal-k8s-frontend--7d9c5b8f6--0003d-eth0"; err != nil || r.key != want {
		t.Errorf("the endpoint is %s, %v, want %s", r.key, err, want)
	}
}
