// Package secondring_test shows on a real API server, with real allocations and
// the real binary, that ip-reaper leaves what an operator would say "not that one"
// or "not now" of: what is coming back, what is kept back, what may still be
// running, what a wrong list makes look leaked, and what another run is at. The
// numbers in the comments are those of the promises in docs/design.md.
package secondring_test

import (
	"context"
	"os"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// TestMain has the tests run in a cluster with Calico's resources and with some
// that reserve addresses.
func TestMain(m *testing.M) {
	os.Exit(cluster.Run(m, func(ctx context.Context) (cluster.Options, error) {
		crds, err := calico.CRDs(ctx)
		return cluster.Options{CRDs: []string{crds, "../kit/cluster/reserved-ips.yaml"}}, err
	}))
}

const (
	shop = "shop"   // the namespace of the pods
	home = "reaper" // that of ledger, journal and lock
)

// How a policy begins, and one that waits for nothing. Calico is used where a test
// is about it.
const (
	header   = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\ndryRun: false\nminAge: 0s\n"
	noCalico = "backends: {calico: {enabled: false}}\n"
	patient  = header + noCalico + "gracePeriod: 10m\n"
	atOnce   = header + noCalico + "gracePeriod: 0s\n"
)

// Networks whose addresses have an entry each, and one with a allocation beside it.
var (
	lan  = plugin.Network{Range: "10.0.0.0/24", DisableOverlapping: true}
	wide = plugin.Network{Range: "10.0.0.0/24"}
)

// A scene is an empty cluster with the plugin on its nodes, a bystander pod that
// nobody reserves anything for, and the reaper behind a proxy.
type scene struct {
	*testing.T
	*cluster.Cluster
	plugin     *plugin.Plugin
	network    plugin.Network // of the pods
	toReaper   *proxy.Proxy
	kubeconfig string // of the reaper
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, Cluster: cluster.StartT(t), network: lan}
	s.must(s.Reset(t.Context()))
	for _, namespace := range []string{shop, home} {
		s.must(s.CreateNamespace(t.Context(), namespace))
	}
	var err error
	s.plugin, err = plugin.New(t.TempDir(), s.Kubeconfig)
	s.must(err)
	s.toReaper, s.kubeconfig = s.proxy()
	// Nothing is released in a cluster without a single pod.
	_, err = s.CreatePod(t.Context(), "default", "bystander")
	s.must(err)
	return s
}

// proxy starts a proxy before the API server, and returns the kubeconfig that
// leads through it.
func (s *scene) proxy() (*proxy.Proxy, string) {
	s.Helper()
	p, err := proxy.Start(s.Config)
	s.must(err)
	s.Cleanup(p.Stop)
	kubeconfig, err := s.KubeconfigFor(p.Config(s.Config))
	s.must(err)
	return p, kubeconfig
}

// must ends the test at an error.
func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// start starts the reaper with a policy.
func (s *scene) start(policy string, args ...string) *reap.Process {
	s.Helper()
	return reap.StartT(s, s.kubeconfig, policy, nil, append([]string{"--namespace", home}, args...)...)
}

// reap runs the reaper with a policy.
func (s *scene) reap(code int, policy string, args ...string) reap.Result {
	s.Helper()
	return s.start(policy, args...).EndT(s, code)
}

// leak has the plugin give an address to a sandbox of a pod that does not exist, and
// returns the address.
func (s *scene) leak(pod string) string {
	s.Helper()
	ips, err := s.plugin.Add(s.Context(), s.network, plugin.Pod{Namespace: shop, Name: pod}, "sandbox-of-"+pod, "net1")
	s.must(err)
	return ips[0].String()
}

// live is leak for a pod that exists and shows the address.
func (s *scene) live(pod string, options ...cluster.PodOption) {
	s.Helper()
	s.pod(pod, append(options, cluster.Networks(cluster.Attached("shop/net", "net1", s.leak(pod))))...)
}

// pod creates a pod of the shop. Like what hooks call, which run on goroutines of
// the proxy, it does not end the test.
func (s *scene) pod(name string, options ...cluster.PodOption) {
	if _, err := s.CreatePod(s.Context(), shop, name, options...); err != nil {
		s.Error(err)
	}
}

// dies deletes a pod of the shop as kubectl delete --force does.
func (s *scene) dies(name string) {
	if err := s.DeletePod(s.Context(), shop, name); err != nil {
		s.Error(err)
	}
}

// again has the plugin give the address of a pod to another sandbox of it, as when
// the pod comes back under its name.
func (s *scene) again(pod, sandbox string) {
	if _, err := s.plugin.Add(s.Context(), s.network, plugin.Pod{Namespace: shop, Name: pod}, sandbox, "net1"); err != nil {
		s.Error(err)
	}
}
