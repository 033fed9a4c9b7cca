// Package whereabouts_test shows on a real API server, with the real plugin and the real binary,
// what ip-reaper does with the stores of Whereabouts: that it releases what pods left behind, and
// takes no address from a pod that has it, even if the cluster changes between its looks and its
// writes. The plugin makes each state that it can make. What only old versions, other programs or
// accidents leave behind is written as they left it. The numbers in the comments refer to the
// promises in docs/design.md.
package whereabouts_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
)

// TestMain runs the tests in a cluster with Multus's network attachments and without Calico's
// resources.
func TestMain(m *testing.M) { kit.Main(m, kit.Options{Sets: []kit.Set{kit.Attachments}}) }

// shop is the namespace of the pods.
const shop = "shop"

// lan is the network of most pods.
var lan = plugin.Network{Range: "10.0.0.0/24"}

// A fixture is an empty cluster with a bystander pod that has no allocation. The reaper and the
// plugin each talk to it through their own proxy, so that each can be held back while the other
// goes on. The test itself talks to it directly.
type fixture struct {
	*testing.T
	*cluster.Cluster
	plugin             *plugin.Plugin
	toReaper, toPlugin *proxy.Proxy
	kubeconfig         string // of the reaper
	sandboxes          int
}

// newFixture empties the cluster.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, Cluster: cluster.StartT(t)}
	f.ResetT(t)
	f.toReaper, f.kubeconfig = f.proxy()
	var kubeconfig string
	f.toPlugin, kubeconfig = f.proxy()
	f.plugin = f.pluginFor(kubeconfig)
	f.must(f.CreateNamespace(t.Context(), shop))
	// Nothing is released in a cluster without a single pod.
	_, err := f.CreatePod(t.Context(), "default", "bystander")
	f.must(err)
	return f
}

// proxy starts a proxy that lasts as long as the test, and returns it with a kubeconfig that leads
// through it.
func (f *fixture) proxy() (*proxy.Proxy, string) {
	f.Helper()
	p, err := proxy.Start(f.Config)
	f.must(err)
	f.Cleanup(p.Stop)
	kubeconfig, err := f.KubeconfigFor(p.Config(f.Config))
	f.must(err)
	return p, kubeconfig
}

// must ends the test on an error.
func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// each runs a part of the test as a subtest on the same fixture.
func (f *fixture) each(name string, part func()) {
	f.Helper()
	whole := f.T
	whole.Run(name, func(t *testing.T) {
		f.T = t
		part()
	})
	f.T = whole
}

// pluginFor returns the plugin with another kubeconfig.
func (f *fixture) pluginFor(kubeconfig string) *plugin.Plugin {
	f.Helper()
	p, err := plugin.New(f.TempDir(), kubeconfig)
	f.must(err)
	return p
}

// add makes the plugin give addresses to net1 of a pod of the shop, in a new sandbox. No pod object
// is needed: a pod that is gone leaves only what its ADD has left.
func (f *fixture) add(n plugin.Network, pod string) []string {
	f.Helper()
	ips, err := f.tryAdd(n, pod, f.sandbox())
	f.must(err)
	return ips
}

// tryAdd is add for any sandbox, and may fail.
func (f *fixture) tryAdd(n plugin.Network, pod, sandbox string) ([]string, error) {
	addrs, err := f.plugin.Add(f.Context(), n, plugin.Pod{Namespace: shop, Name: pod}, sandbox, "net1")
	var ips []string
	for _, addr := range addrs {
		ips = append(ips, addr.String())
	}
	return ips, err
}

// addOne makes the plugin give one address to net1 of a sandbox of the pod.
func (f *fixture) addOne(n plugin.Network, pod, sandbox string) (string, error) {
	ips, err := f.tryAdd(n, pod, sandbox)
	switch {
	case err != nil:
		return "", err
	case len(ips) != 1:
		return "", fmt.Errorf("ADD gave %v, want one address", ips)
	}
	return ips[0], nil
}

// del runs a real DEL.
func (f *fixture) del(n plugin.Network, pod, sandbox string) {
	f.Helper()
	f.must(f.plugin.Del(f.Context(), n, plugin.Pod{Namespace: shop, Name: pod}, sandbox, "net1"))
}

// sandbox returns the ID of a new sandbox.
func (f *fixture) sandbox() string {
	f.sandboxes++
	return fmt.Sprintf("sandbox-%d", f.sandboxes)
}

// pod creates a pod of the shop. Like everything that hooks call on a proxy's goroutines, it does
// not end the test.
func (f *fixture) pod(name string, opts ...cluster.PodOption) {
	f.Helper()
	if _, err := f.CreatePod(f.Context(), shop, name, opts...); err != nil {
		f.Error(err)
	}
}

// runs creates a pod of the shop that shows the addresses on net1, as after Multus has succeeded.
func (f *fixture) runs(name string, ips ...string) {
	f.Helper()
	f.pod(name, shows("net1", ips...))
}

// shows returns Multus's annotation for one interface.
func shows(iface string, ips ...string) cluster.PodOption {
	return cluster.Networks(cluster.Attached("shop/net", iface, ips...))
}

// pending makes a pod look just scheduled.
var pending = cluster.Phase(corev1.PodPending)

// gone deletes a pod of the shop like kubectl delete --force: the plugin is not called. It does not
// end the test.
func (f *fixture) gone(name string) {
	f.Helper()
	if err := f.DeletePod(f.Context(), shop, name); err != nil {
		f.Error(err)
	}
}

// clear deletes what an earlier part of the test has stored, the ledger, and the pods.
func (f *fixture) clear(pods ...string) {
	f.Helper()
	f.toReaper.Reset()
	f.toPlugin.Reset()
	client := f.Whereabouts.WhereaboutsV1alpha1()
	everything := metav1.ListOptions{}
	errs := []error{
		client.IPPools(cluster.PoolNamespace).DeleteCollection(f.Context(), metav1.DeleteOptions{}, everything),
		client.OverlappingRangeIPReservations(cluster.PoolNamespace).DeleteCollection(f.Context(), metav1.DeleteOptions{}, everything),
	}
	for _, pod := range pods {
		errs = append(errs, f.DeletePod(f.Context(), shop, pod))
	}
	err := f.Kube.CoreV1().ConfigMaps(cluster.PoolNamespace).Delete(f.Context(), "ip-reaper-ledger", metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		errs = append(errs, err)
	}
	f.must(errors.Join(errs...))
}
