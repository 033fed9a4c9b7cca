// Package undo_test shows on a real API server and a real etcd, with addresses that
// the real plugins gave out and the real binary, that what a run released can be put
// back: wherever the run was cut short, by whatever journal, and never at the expense
// of whoever has an address by then. The numbers in the comments are those of the
// promises in docs/design.md.
package undo_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/rights"
)

func TestMain(m *testing.M) {
	os.Exit(cluster.Run(m, func(ctx context.Context) (cluster.Options, error) {
		crds, err := calico.CRDs(ctx)
		return cluster.Options{
			CRDs: []string{crds, "../kit/cluster/reserved-ips.yaml"},
			// Its cache has each list wait for up to a tenth of a second.
			Flags: map[string]string{"watch-cache": "false"},
		}, err
	}))
}

const (
	shop = "shop"      // the namespace of the pods
	home = rights.Home // that of ledger, journals and lock
	node = "node-1"

	// releaseAll is a policy that waits for nothing, and under which a allocation
	// goes when it has expired. Its limits are off, since most entries here are leaks.
	releaseAll = `apiVersion: ip-reaper/v1alpha1
kind: ReapPolicy
dryRun: false
minAge: 0s
limits: {maxFraction: 1}
journal: {keep: 100}
protection:
  reservedIPs:
  - resource: {group: network.example.com, version: v1alpha1, resource: reservedips}
    address: .status.ips[*]
    pod: .spec.pod
    ttl: .spec.ttl
    deletedAt: .status.deletedAt
    deleteExpired: true
`
	releaseNow = releaseAll + "gracePeriod: 0s\n"
	onlyLook   = releaseAll + "gracePeriod: 1h\n" // and remember

	// inOrder has one pool released after the other.
	inOrder = "--concurrency=1"
)

// A scene is an empty cluster with a node, and the reaper, which speaks to the API
// server through a proxy.
type scene struct {
	*testing.T
	*calico.Datastore
	proxy      *proxy.Proxy
	kubeconfig string   // of the reaper
	env        []string // more of the reaper's environment
	dir        string
}

func newScene(t *testing.T, d *calico.Datastore) *scene {
	t.Helper()
	s := &scene{T: t, Datastore: d, dir: t.TempDir()}
	if d.Etcd != nil {
		s.env = []string{"ETCD_ENDPOINTS=" + d.Etcd.Endpoint}
	}
	for _, namespace := range []string{shop, home} {
		s.must(d.Cluster.CreateNamespace(t.Context(), namespace))
	}
	s.must(d.CreateNode(t.Context(), node))
	var err error
	s.proxy, err = proxy.Start(d.Cluster.Config)
	s.must(err)
	t.Cleanup(s.proxy.Stop)
	s.kubeconfig, err = d.Cluster.KubeconfigFor(s.proxy.Config(d.Cluster.Config))
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

// start starts the reaper under a policy, with the lock as it is.
func (s *scene) start(command, policy string, args ...string) *reap.Process {
	s.Helper()
	return s.startWith("", command, policy, args...)
}

// startWith is start with an input.
func (s *scene) startWith(stdin, command, policy string, args ...string) *reap.Process {
	s.Helper()
	r, err := reap.New()
	s.must(err)
	r.Env, r.Stdin = s.env, stdin
	p, err := r.Start(s.Context(), append([]string{
		command, "--kubeconfig=" + s.kubeconfig, "--context=" + cluster.ContextName, "--namespace=" + home,
		"--policy=" + s.file("policy.yaml", policy), "-o=json",
	}, args...)...)
	s.must(err)
	return p
}

// file writes a file of the scene.
func (s *scene) file(name, text string) string {
	s.Helper()
	path := filepath.Join(s.dir, name)
	s.must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// wait waits for the end of a process, which must exit with the code.
func (s *scene) wait(p *reap.Process, code int) reap.Result {
	s.Helper()
	result, err := p.Wait()
	s.must(err)
	if result.ExitCode != code {
		s.Fatalf("exit code %d, want %d\n%s%s", result.ExitCode, code, result.Stdout, result.Stderr)
	}
	return result
}

// run runs under the policy, for a run that has to be done.
func (s *scene) run(policy string, args ...string) reap.Result {
	s.Helper()
	s.unlock()
	return s.wait(s.start("run", policy, append(args, inOrder)...), reap.ExitDone)
}

// unlock takes the lock away: a process that was killed leaves it for half a minute.
func (s *scene) unlock() {
	s.Helper()
	s.must(s.Cluster.Kube.CoordinationV1().Leases(home).DeleteCollection(s.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
}
