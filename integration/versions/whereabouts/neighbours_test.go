package whereabouts_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

var (
	ciliumEndpoints = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumendpoints"}
	ciliumNodes     = schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumnodes"}
)

// Pods have their first address from Cilium or flannel, and a second one from Whereabouts. The
// second ones are judged right. The first ones are no allocations, and keep their addresses
// where a pool of Whereabouts overlaps them. Nothing of Cilium is asked for, not even by
// discovery, and a node, where flannel keeps what it knows, is only read.
func TestPodsOfOtherNetworksBesideWhereabouts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		network string // the default one, as Multus names it
		set     func(*fixture)
	}{
		{"Cilium", "cilium", (*fixture).withCilium},
		{"flannel", "cbr0", (*fixture).withFlannel},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			tt.set(f)
			f.pod("web-0", cluster.PodIPs("10.244.1.5", "fd00:10:244:1::5"), multus(tt.network, "10.244.1.5", "10.1.0.1"))
			f.pod("web-1", cluster.PodIPs("10.244.1.6")) // without Multus
			// Cilium can leave the first address to Whereabouts, without Multus.
			f.pod("first", cluster.PodIPs("10.1.0.3"))
			f.load(pools,
				pool("10.1.0.0-24", "10.1.0.0/24", `{"1":`+ofPod(one, "a/web-0")+`,"2":`+ofPod(two, "a/gone")+`,"3":`+ofPod(three, "a/first")+`}`),
				pool("10.244.0.0-16", "10.244.0.0/16", `{"261":`+ofPod(two, "a/gone")+`,"262":`+ofPod(two, "a/gone")+`}`))
			f.load(reservations, reservation("10.1.0.1", reservedFor(one, "a/web-0")), reservation("10.1.0.2", reservedFor(two, "a/gone")))
			f.play("", verdicts{
				kept:                      append(both("10.1.0.0-24", "10.1.0.1", "10.1.0.1"), "10.1.0.0-24 10.1.0.3"),
				"inUse AddressInUse kept": {"10.244.0.0-16 10.244.1.5", "10.244.0.0-16 10.244.1.6"},
				released:                  both("10.1.0.0-24", "10.1.0.2", "10.1.0.2"),
			})
			read := []string{"get", "list", "watch"}
			seen := map[string]bool{}
			for _, r := range f.toReaper.Requests() {
				seen[r.Resource] = true
				if strings.Contains(strings.ToLower(r.Path), "cilium") || r.Resource == "nodes" && !slices.Contains(read, r.Verb) {
					t.Errorf("the run asks for %s", r)
				}
			}
			if !seen["nodes"] || !seen["pods"] || !seen["ippools"] {
				t.Errorf("the run asks for %v, want nodes, pods and pools among them", seen)
			}
		})
	}
}

// multus is the annotation of a pod with its first address by a network and others on net1.
func multus(network, first string, others ...string) cluster.PodOption {
	text := `[{"name":"` + network + `","interface":"eth0","ips":["` + first + `"],"default":true,"dns":{}}`
	for _, ip := range others {
		text += `,{"name":"a/lan","interface":"net1","ips":["` + ip + `"],"dns":{}}`
	}
	return cluster.Annotation(cluster.NetworkStatusAnnotation, text+"]")
}

// withCilium adds Cilium's objects: of a pod that is there, of the one that is gone, which
// Cilium has not noticed yet, and of the node.
func (f *fixture) withCilium() {
	f.Helper()
	f.must(f.CreateNode(f.Context(), cluster.DefaultNode, true))
	f.define(ciliumEndpoints, "CiliumEndpoint", "Namespaced")
	f.define(ciliumNodes, "CiliumNode", "Cluster")
	for name, ip := range map[string]string{"web-0": "10.244.1.5", "gone": "10.244.1.7"} {
		f.create(ciliumEndpoints, "a", "CiliumEndpoint", name, map[string]any{"status": map[string]any{
			"networking": map[string]any{"addressing": []any{map[string]any{"ipv4": ip}}, "node": "172.18.0.2"},
		}})
	}
	f.create(ciliumNodes, "", "CiliumNode", cluster.DefaultNode, map[string]any{"spec": map[string]any{
		"ipam": map[string]any{"podCIDRs": []any{"10.244.1.0/24"}, "pool": map[string]any{"10.244.1.7": map[string]any{"owner": "a/gone"}}},
	}})
}

// withFlannel adds what flannel keeps: annotations of the node, and its range.
func (f *fixture) withFlannel() {
	f.Helper()
	f.must(f.CreateNode(f.Context(), cluster.DefaultNode, true))
	nodes := f.Kube.CoreV1().Nodes()
	node, err := nodes.Get(f.Context(), cluster.DefaultNode, metav1.GetOptions{})
	f.must(err)
	node.Spec.PodCIDR, node.Spec.PodCIDRs = "10.244.1.0/24", []string{"10.244.1.0/24"}
	node.Annotations = map[string]string{
		"flannel.alpha.coreos.com/backend-type":        "vxlan",
		"flannel.alpha.coreos.com/backend-data":        `{"VNI":1,"VtepMAC":"5e:8a:31:0c:4d:11"}`,
		"flannel.alpha.coreos.com/kube-subnet-manager": "true",
		"flannel.alpha.coreos.com/public-ip":           "172.18.0.2",
	}
	_, err = nodes.Update(f.Context(), node, metav1.UpdateOptions{})
	f.must(err)
}

// define defines a custom resource that keeps every field.
func (f *fixture) define(resource schema.GroupVersionResource, kind, scope string) {
	f.Helper()
	f.create(cluster.Definitions, "", "CustomResourceDefinition", resource.GroupResource().String(), map[string]any{"spec": map[string]any{
		"group": resource.Group, "scope": scope,
		"names": map[string]any{"kind": kind, "plural": resource.Resource, "singular": strings.ToLower(kind)},
		"versions": []any{map[string]any{"name": resource.Version, "served": true, "storage": true, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		}}},
	}})
	cluster.AwaitT(f, resource.Resource, func() bool {
		_, err := f.Dynamic.Resource(resource).List(f.Context(), metav1.ListOptions{})
		return err == nil
	})
}

// create creates an object with these fields.
func (f *fixture) create(resource schema.GroupVersionResource, namespace, kind, name string, fields map[string]any) {
	f.Helper()
	fields["apiVersion"], fields["kind"] = resource.GroupVersion().String(), kind
	fields["metadata"] = map[string]any{"name": name}
	_, err := f.Dynamic.Resource(resource).Namespace(namespace).Create(f.Context(), &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{})
	f.must(err)
}
