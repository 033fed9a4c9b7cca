// Package whereabouts_test runs the real binary on what other versions of Whereabouts store
// and on what other versions of Multus write, in a real API server. The recordings are in
// backends/whereabouts/testdata. What no recording has is written by hand, after the source
// of the version, and the tests say so. The numbers in the comments are those of the promises
// in docs/design.md.
package whereabouts_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/assets"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/snapshot"
)

// TestMain has the tests run in a cluster with Multus's network attachments.
func TestMain(m *testing.M) { kit.Main(m, kit.Options{Sets: []kit.Set{kit.Attachments}}) }

// Where the API server keeps what is loaded.
var (
	pods                = snapshot.Resource{API: "/api/v1", Name: "pods", Namespaced: true}
	pools, reservations = snapshot.Pools, snapshot.Reservations
)

// A fixture is an empty cluster that keeps every field of Whereabouts' objects, and a proxy
// through which the reaper speaks to it.
type fixture struct {
	*testing.T
	*cluster.Cluster
	toReaper   *proxy.Proxy
	kubeconfig string // of the reaper
}

// newFixture empties the cluster.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, Cluster: cluster.StartT(t)}
	f.ResetT(t)
	f.keepEveryField("ippools", "IPPool")
	f.keepEveryField("overlappingrangeipreservations", "OverlappingRangeIPReservation")
	p, err := proxy.Start(f.Config)
	f.must(err)
	f.Cleanup(p.Stop)
	f.toReaper = p
	f.kubeconfig, err = f.KubeconfigFor(p.Config(f.Config))
	f.must(err)
	f.must(f.CreateNamespace(t.Context(), "a"))
	return f
}

// must ends the test at an error.
func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// keepEveryField has the API server take any object of the resource and keep it whole: the
// definitions of one version drop or refuse what another version stores.
func (f *fixture) keepEveryField(resource, kind string) {
	f.Helper()
	_, err := f.Dynamic.Resource(cluster.Definitions).Patch(f.Context(), resource+".whereabouts.cni.cncf.io", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema",
			"value":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}]`), metav1.PatchOptions{})
	f.must(err)
	cluster.AwaitT(f, "every field of "+resource, func() bool {
		kept, err := f.Whereabouts.WhereaboutsV1alpha1().RESTClient().Post().Namespace(cluster.PoolNamespace).Resource(resource).
			Param("dryRun", "All").Body([]byte(`{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"` + kind + `",
				"metadata":{"name":"probe"},"spec":"probe"}`)).Do(f.Context()).Raw()
		return err == nil && bytes.Contains(kept, []byte(`"spec":"probe"`))
	})
}

// loadRecording creates what a version stored and the pods of that time, and compares what
// the API server has then.
func (f *fixture) loadRecording(version string) {
	f.Helper()
	root, err := assets.Root()
	f.must(err)
	for _, r := range []snapshot.Resource{pods, pools, reservations} {
		data, err := os.ReadFile(filepath.Join(root, "..", "backends", "whereabouts", "testdata", version, r.Name+".json"))
		f.must(err)
		var list struct{ Items []json.RawMessage }
		f.must(json.Unmarshal(data, &list))
		f.load(r, list.Items...)
	}
}

// load creates objects as they are given.
func (f *fixture) load(r snapshot.Resource, items ...json.RawMessage) {
	f.Helper()
	for _, item := range items {
		var o struct {
			Metadata struct{ Namespace, Name string }
			Spec     any
		}
		f.must(json.Unmarshal(item, &o))
		created := snapshot.Object{Resource: r, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name, Raw: item}
		f.must(created.Create(f.Context(), f.Cluster))
		want := o.Spec
		raw, err := f.Kube.Discovery().RESTClient().Get().AbsPath(created.Path()).Do(f.Context()).Raw()
		f.must(err)
		f.must(json.Unmarshal(raw, &o))
		if diff := cmp.Diff(want, o.Spec); diff != "" {
			f.Fatalf("the API server changed %s (-recorded +stored):\n%s", created.Path(), diff)
		}
	}
}

// pool is an IPPool that is written by hand.
func pool(name, cidr, allocations string) json.RawMessage {
	return fmt.Appendf(nil, `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"IPPool",
		"metadata":{"namespace":%q,"name":%q},"spec":{"range":%q,"allocations":%s}}`, cluster.PoolNamespace, name, cidr, allocations)
}

// reservation is an overlapping reservation that is written by hand.
func reservation(name, spec string) json.RawMessage {
	return fmt.Appendf(nil, `{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"OverlappingRangeIPReservation",
		"metadata":{"namespace":%q,"name":%q},"spec":%s}`, cluster.PoolNamespace, name, spec)
}

// pod creates a pod of the namespace a.
func (f *fixture) pod(name string, opts ...cluster.PodOption) {
	f.Helper()
	_, err := f.CreatePod(f.Context(), "a", name, opts...)
	f.must(err)
}
