// Package calico_test proves what the reaper does to Calico's IPAM, in either datastore. Calico's
// own plugin allocates the addresses, and Calico's own tools judge what is left.
package calico_test

import (
	"net/netip"
	"testing"
	"time"

	"google.golang.org/grpc"
	"k8s.io/client-go/rest"

	backend "github.com/ip-reaper/ip-reaper/backends/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

func TestMain(m *testing.M) { kit.Main(m, kit.Options{Sets: []kit.Set{kit.Calico}}) }

const (
	shop = "shop" // the namespace of the pods
	node = "node-1"

	// releaseNow is a policy that waits for nothing. Its limits are off, because most entries here
	// are leaks.
	releaseNow = `apiVersion: ip-reaper/v1alpha1
kind: ReapPolicy
dryRun: false
gracePeriod: 0s
minAge: 0s
limits: {maxFraction: 1}
`
)

// A fixture is an empty cluster with a node, an IPv4 and an IPv6 pool with blocks of 64 addresses,
// a bystander pod, and the reaper.
type fixture struct {
	*testing.T
	*calico.Datastore
	kubeconfig string   // of the reaper
	env        []string // additional environment of the reaper
}

// each runs the test in either datastore.
func each(t *testing.T, test func(s *fixture)) {
	t.Helper()
	calico.EachT(t, func(t *testing.T, d *calico.Datastore) { test(newFixture(t, d)) })
}

func newFixture(t *testing.T, d *calico.Datastore) *fixture {
	t.Helper()
	s := &fixture{T: t, Datastore: d, kubeconfig: d.Cluster.Kubeconfig}
	if d.Etcd != nil {
		s.env = []string{"ETCD_ENDPOINTS=" + d.Etcd.Endpoint}
	}
	s.must(d.Cluster.CreateNamespace(t.Context(), shop))
	s.must(d.Ready(t.Context(), node))
	// Nothing is released in a cluster without a single pod.
	_, err := d.Cluster.CreatePod(t.Context(), "default", "bystander")
	s.must(err)
	return s
}

// must ends the test on an error.
func (s *fixture) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// leak makes the plugin give an address to a sandbox whose pod does not exist.
func (s *fixture) leak(pod string) (calico.Sandbox, netip.Addr) {
	s.Helper()
	sandbox := calico.NewSandbox(shop, pod, node)
	ips, err := s.Add(s.Context(), sandbox)
	s.must(err)
	return sandbox, ips[0]
}

// live makes the plugin give an address to a sandbox whose pod runs and shows it.
func (s *fixture) live(pod string) (calico.Sandbox, netip.Addr) {
	s.Helper()
	sandbox, ip := s.leak(pod)
	s.must(s.CreatePod(s.Context(), sandbox, []netip.Addr{ip}))
	return sandbox, ip
}

// start starts the reaper with the policy.
func (s *fixture) start(policy string, args ...string) *reap.Process {
	s.Helper()
	if s.Etcd != nil {
		policy += reap.InEtcd
	}
	return reap.StartT(s.T, s.kubeconfig, policy, s.env, args...)
}

// watched makes the reaper talk to the API server through a new proxy.
func (s *fixture) watched() *proxy.Proxy {
	s.Helper()
	p := s.proxy()
	s.kubeconfig = s.kubeconfigOf(p)
	return p
}

// proxy starts a proxy in front of the API server.
func (s *fixture) proxy() *proxy.Proxy {
	s.Helper()
	p, err := proxy.Start(s.Cluster.Config)
	s.must(err)
	s.Cleanup(p.Stop)
	return p
}

// kubeconfigOf returns a kubeconfig that leads through the proxy.
func (s *fixture) kubeconfigOf(p *proxy.Proxy) string {
	s.Helper()
	kubeconfig, err := s.Cluster.KubeconfigFor(p.Config(s.Cluster.Config))
	s.must(err)
	return kubeconfig
}

// mustReap runs the reaper, which must exit with the code.
func (s *fixture) mustReap(code int, policy string, args ...string) *reap.Report {
	s.Helper()
	return s.start(policy, args...).EndT(s.T, code).Report
}

// clean fails the test unless calicoctl finds nothing wrong with addresses and
// handles.
func (s *fixture) clean() {
	s.Helper()
	report, err := s.Check(s.Context())
	s.must(err)
	if err := report.Clean(); err != nil {
		s.Error(err)
	}
}

// engine returns an engine with only Calico's backend, and optionally with another clock.
func (s *fixture) engine(now ...func() time.Time) reap.Engine {
	e := reap.Engine{Kubeconfig: s.kubeconfig, Env: s.env, Only: []string{"calico"}}
	if len(now) > 0 {
		e.Now = now[0]
	}
	return e
}

// intercepted returns an engine whose first transaction the hook intercepts.
func (s *fixture) intercepted(hook func(reap.Transaction) error) reap.Engine {
	e := s.engine()
	e.Dial = []grpc.DialOption{reap.OnTransaction(hook)}
	return e
}

// later runs as if in an hour, when everything that a ledger remembers is due.
func (s *fixture) later(policy string) *reap.Report {
	s.Helper()
	report, err := s.engine(reap.After(time.Hour)).Run(s.Context(), policy)
	s.must(err)
	return report
}

// empty removes every block, handle and affinity.
func (s *fixture) empty() {
	s.Helper()
	for _, kind := range []calico.Kind{calico.Block, calico.Handle, calico.Affinity} {
		all, err := s.List(s.Context(), kind)
		s.must(err)
		for name := range all {
			s.must(s.Delete(s.Context(), kind, name))
		}
	}
}

// backend returns the backend over the fixture's datastore.
func (s *fixture) backend() *backend.Backend {
	s.Helper()
	config := rest.CopyConfig(s.Cluster.Config)
	config.QPS = -1
	b, err := s.engine().Blocks(config)
	s.must(err)
	return b
}
