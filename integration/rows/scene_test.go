package rows_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// shop is the namespace of the pods of the scenarios.
const shop = "shop"

// A scene is an empty cluster with the plugin on its nodes, a bystander pod
// that nobody reserves anything for, and the reaper.
type scene struct {
	*testing.T
	cluster    *cluster.Cluster
	plugin     *plugin.Plugin
	kubeconfig string // of the reaper
	sandboxes  int
}

// newScene empties the cluster.
func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, cluster: cluster.StartT(t)}
	s.must(s.cluster.Reset(t.Context()))
	s.kubeconfig = s.cluster.Kubeconfig
	s.plugin = s.pluginFor(s.cluster.Kubeconfig)
	s.must(s.cluster.CreateNamespace(t.Context(), shop))
	// Nothing is released in a cluster without a single pod.
	_, err := s.cluster.CreatePod(t.Context(), "default", "bystander")
	s.must(err)
	return s
}

// must ends the test at an error.
func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// pluginFor returns the plugin with another kubeconfig.
func (s *scene) pluginFor(kubeconfig string) *plugin.Plugin {
	s.Helper()
	p, err := plugin.New(s.TempDir(), kubeconfig)
	s.must(err)
	return p
}

// watched puts a proxy between the reaper and the API server.
func (s *scene) watched() *proxy.Proxy {
	s.Helper()
	p, err := proxy.Start(s.cluster.Config)
	s.must(err)
	s.Cleanup(p.Stop)
	s.kubeconfig, err = s.cluster.KubeconfigFor(p.Config(s.cluster.Config))
	s.must(err)
	return p
}

// add has the plugin give addresses to net1 of a pod of the shop, in a sandbox
// that is new. It asks for no pod object: of a pod that is gone, what is left
// is what its ADD has left.
func (s *scene) add(n plugin.Network, pod string) []string {
	s.Helper()
	return s.addTo(n, pod, "net1")
}

// addTo is add for any interface.
func (s *scene) addTo(n plugin.Network, pod, iface string) []string {
	s.Helper()
	ips, err := s.tryAdd(n, pod, iface)
	s.must(err)
	return ips
}

// tryAdd is addTo where it may fail.
func (s *scene) tryAdd(n plugin.Network, pod, iface string) ([]string, error) {
	addrs, err := s.plugin.Add(s.Context(), n, plugin.Pod{Namespace: shop, Name: pod}, s.sandbox(), iface)
	var ips []string
	for _, addr := range addrs {
		ips = append(ips, addr.String())
	}
	return ips, err
}

// sandbox returns the ID of a sandbox that there was not before.
func (s *scene) sandbox() string {
	s.sandboxes++
	return fmt.Sprintf("sandbox-%d", s.sandboxes)
}

// pod creates a pod of the shop.
func (s *scene) pod(name string, opts ...cluster.PodOption) {
	s.Helper()
	_, err := s.cluster.CreatePod(s.Context(), shop, name, opts...)
	s.must(err)
}

// runs creates a pod of the shop that shows the addresses on net1, as Multus
// does when all is well.
func (s *scene) runs(name string, ips ...string) {
	s.Helper()
	s.pod(name, shows("net1", ips...))
}

// shows is the annotation of Multus for one interface.
func shows(iface string, ips ...string) cluster.PodOption {
	return cluster.Networks(cluster.Attached("shop/net", iface, ips...))
}

// gone deletes a pod of the shop as kubectl delete --force does.
func (s *scene) gone(name string) {
	s.Helper()
	s.must(s.cluster.DeletePod(s.Context(), shop, name))
}

// writePool writes a pool as it is given.
func (s *scene) writePool(name, cidr, allocations string) {
	s.Helper()
	s.write("ippools", fmt.Sprintf(`{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1","kind":"IPPool",
		"metadata":{"name":%q},"spec":{"range":%q,"allocations":%s}}`, name, cidr, allocations))
}

// writeReservation writes an overlapping-range reservation as the plugin does.
func (s *scene) writeAllocation(name, podRef string) {
	s.Helper()
	s.write("overlappingrangeipreservations", fmt.Sprintf(`{"apiVersion":"whereabouts.cni.cncf.io/v1alpha1",
		"kind":"OverlappingRangeIPReservation","metadata":{"name":%q},"spec":{"podref":%q,"ifname":"net1"}}`, name, podRef))
}

// write creates an object from its JSON in the namespace of the pools.
func (s *scene) write(resource, object string) {
	s.Helper()
	s.must(s.client().Post().Namespace(cluster.PoolNamespace).Resource(resource).
		Param("fieldValidation", "Ignore").Body([]byte(object)).Do(s.Context()).Error())
}

// wantAddresses fails the test unless the addresses are those.
func (s *scene) wantAddresses(got []string, want ...string) {
	s.Helper()
	if !slices.Equal(got, want) {
		s.Errorf("addresses %v, want %v", got, want)
	}
}

// wantSame fails the test unless nothing was written between two looks.
func (s *scene) wantSame(when string, before, after map[string]string) {
	s.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		s.Errorf("versions %s (-before +after):\n%s", when, diff)
	}
}

// emptyPool takes all entries out of a pool and leaves their allocations.
func (s *scene) emptyPool(name string) {
	s.Helper()
	s.patch("ippools", name, types.JSONPatchType, `[{"op":"replace","path":"/spec/allocations","value":{}}]`)
}

// patch patches an object in the namespace of the pools.
func (s *scene) patch(resource, name string, kind types.PatchType, body string) {
	s.Helper()
	s.must(s.client().Patch(kind).Namespace(cluster.PoolNamespace).Resource(resource).Name(name).
		Body([]byte(body)).Do(s.Context()).Error())
}

// kubeconfigIn returns the administrator's kubeconfig with another namespace,
// which is where the plugin that uses it keeps its pools.
func (s *scene) kubeconfigIn(namespace string) string {
	s.Helper()
	k, err := clientcmd.LoadFromFile(s.cluster.Kubeconfig)
	s.must(err)
	k.Contexts[k.CurrentContext].Namespace = namespace
	path := filepath.Join(s.TempDir(), "kubeconfig")
	s.must(clientcmd.WriteToFile(*k, path))
	return path
}
