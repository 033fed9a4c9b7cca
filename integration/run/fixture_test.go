// Package run_test shows on a real API server, with real allocations and the real binary, what a
// run and a restore do as a process among others: they take the lock, they lack rights, they push
// metrics, and they put back what a run released. Package reaper proves what a run decides. The
// numbers in the comments refer to the promises in docs/design.md.
package run_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// TestMain runs the tests on an API server that answers lists from its cache, as it does by
// default.
func TestMain(m *testing.M) {
	kit.Main(m, kit.Options{Sets: []kit.Set{kit.Calico, kit.ReservedIPs}, WatchCache: true, Policies: true})
}

const (
	shop = kit.Shop // the namespace of the pods
	home = kit.Home // the namespace of ledger, journals and lock
)

// The beginning of a policy, one that waits, and one that waits for nothing. Only tests about
// Calico enable it.
const (
	header   = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\ndryRun: false\nminAge: 0s\n"
	noCalico = "backends:\n  calico: {enabled: false}\n" // reservedIPs can follow
	patient  = header + "gracePeriod: 10m\n" + noCalico
	atOnce   = header + "gracePeriod: 0s\n" + noCalico
)

// The decisions and outcomes of most entries.
const (
	planned  = "orphan PodAbsent planned"
	refused  = "orphan PodAbsent refused"
	released = "orphan PodAbsent released"
)

// Networks whose addresses have one entry each: lan without a reservation, wide with one.
var (
	lan  = plugin.Network{Range: "10.0.0.0/24", DisableOverlapping: true}
	wide = plugin.Network{Range: "10.0.0.0/24"}
)

// A fixture is an empty cluster with the plugin on its nodes, a bystander pod without an
// allocation, and the reaper behind a proxy.
type fixture struct {
	*testing.T
	*cluster.Cluster
	plugin     *plugin.Plugin
	network    plugin.Network // of the pods
	toReaper   *proxy.Proxy
	kubeconfig string   // of the reaper
	env        []string // additional environment of the reaper
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, Cluster: cluster.StartT(t), network: lan}
	f.ResetT(t)
	for _, namespace := range []string{shop, home} {
		f.must(f.CreateNamespace(t.Context(), namespace))
	}
	var err error
	f.plugin, err = plugin.New(t.TempDir(), f.Kubeconfig)
	f.must(err)
	f.toReaper, f.kubeconfig = f.proxy()
	// A run refuses a cluster without a single pod.
	_, err = f.CreatePod(t.Context(), "default", "bystander")
	f.must(err)
	return f
}

// proxy starts a proxy in front of the API server, and returns it with a kubeconfig that leads
// through it.
func (f *fixture) proxy() (*proxy.Proxy, string) {
	f.Helper()
	p, err := proxy.Start(f.Config)
	f.must(err)
	f.Cleanup(p.Stop)
	config, err := reap.As(f.Cluster, reap.RunAccount)
	f.must(err)
	kubeconfig, err := f.KubeconfigFor(p.Config(config))
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

// start starts the reaper with a policy.
func (f *fixture) start(policy string, args ...string) *reap.Process {
	f.Helper()
	return reap.StartT(f, f.kubeconfig, policy, f.env, append([]string{"--state-namespace", home}, args...)...)
}

// reap runs the reaper with a policy.
func (f *fixture) reap(code int, policy string, args ...string) reap.Result {
	f.Helper()
	return f.start(policy, args...).EndT(f, code)
}

// leak makes the plugin give an address to a sandbox of a pod that does not exist, and returns the
// address.
func (f *fixture) leak(pod string) string {
	f.Helper()
	ips, err := f.plugin.Add(f.Context(), f.network, plugin.Pod{Namespace: shop, Name: pod}, "sandbox-of-"+pod, "net1")
	f.must(err)
	return ips[0].String()
}

// live is leak for a pod that exists and shows the address.
func (f *fixture) live(pod string, options ...cluster.PodOption) {
	f.Helper()
	f.pod(pod, append(options, cluster.Networks(cluster.Attached("shop/net", "net1", f.leak(pod))))...)
}

// pod creates a pod of the shop. Like everything that hooks call on the proxy's goroutines, it does
// not end the test.
func (f *fixture) pod(name string, options ...cluster.PodOption) {
	if _, err := f.CreatePod(f.Context(), shop, name, options...); err != nil {
		f.Error(err)
	}
}

// owners returns who has Whereabouts' addresses.
func (f *fixture) owners() map[string]string {
	f.Helper()
	return kit.StoreT(f, f.Cluster, kit.Pools, kit.Reservations).Owners()
}
