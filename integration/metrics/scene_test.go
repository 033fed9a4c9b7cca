// Package metrics_test shows with the real binary, on a real API server, what stands
// in a real Pushgateway after runs; and that the alerts and the dashboard go by what
// stands there. The numbers in the comments are those of the promises in
// docs/design.md.
package metrics_test

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

// TestMain has the tests run in a cluster with Calico's resources.
func TestMain(m *testing.M) {
	os.Exit(cluster.Run(m, func(ctx context.Context) (cluster.Options, error) {
		crds, err := calico.CRDs(ctx)
		return cluster.Options{CRDs: []string{crds}}, err
	}))
}

const (
	shop = "shop"   // the namespace of the pods
	home = "reaper" // that of ledger, journal and lock
)

// Policies that release at once, and that wait first. Calico is used where a test is
// about it.
const (
	header   = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\ndryRun: false\nminAge: 0s\n"
	noCalico = "backends: {calico: {enabled: false}}\n"
	atOnce   = header + noCalico + "gracePeriod: 0s\n"
	patient  = header + noCalico + "gracePeriod: 10m\n"
)

// lan is a network whose addresses have a allocation beside their entry.
var lan = plugin.Network{Range: "10.0.0.0/24"}

// A scene is an empty cluster with the plugin on its nodes, a pod that nobody
// reserves anything for, a gateway, and the reaper behind a proxy.
type scene struct {
	*testing.T
	*cluster.Cluster
	gateway    *gateway
	plugin     *plugin.Plugin
	toReaper   *proxy.Proxy
	kubeconfig string // of the reaper
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, Cluster: cluster.StartT(t), gateway: startGateway(t)}
	s.must(s.Reset(t.Context()))
	for _, namespace := range []string{shop, home} {
		s.must(s.CreateNamespace(t.Context(), namespace))
	}
	var err error
	s.plugin, err = plugin.New(t.TempDir(), s.Kubeconfig)
	s.must(err)
	s.toReaper, err = proxy.Start(s.Config)
	s.must(err)
	t.Cleanup(s.toReaper.Stop)
	s.kubeconfig, err = s.KubeconfigFor(s.toReaper.Config(s.Config))
	s.must(err)
	// Nothing is released in a cluster without a single pod.
	_, err = s.CreatePod(t.Context(), "default", "bystander")
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

// leak has the plugin give an address to a sandbox of a pod that does not exist.
func (s *scene) leak(pod string) string {
	s.Helper()
	ips, err := s.plugin.Add(s.Context(), lan, plugin.Pod{Namespace: shop, Name: pod}, "sandbox-of-"+pod, "net1")
	s.must(err)
	return ips[0].String()
}

// live is leak for a pod that exists and shows the address.
func (s *scene) live(pod string) {
	s.Helper()
	_, err := s.CreatePod(s.Context(), shop, pod, cluster.Networks(cluster.Attached("shop/net", "net1", s.leak(pod))))
	s.must(err)
}

// start starts the reaper with a policy. Figures go to the URL.
func (s *scene) start(pushURL, policy string, args ...string) *reap.Process {
	s.Helper()
	return reap.StartT(s, s.kubeconfig, policy, []string{"IP_REAPER_PUSH_URL=" + pushURL}, append([]string{"--namespace", home}, args...)...)
}

// reap runs the reaper with a policy, and figures go to the gateway.
func (s *scene) reap(code int, policy string, args ...string) *reap.Report {
	s.Helper()
	return s.start(s.gateway.url, policy, args...).EndT(s, code).Report
}
