// Package safety_test shows on a real API server, with the real whereabouts
// plugin and the real binary, that ip-reaper does not take an address from
// anybody who has it: whoever comes in between, whatever fails, and wherever a
// run is cut short. The numbers in the comments are those of the promises in
// docs/design.md.
package safety_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// How a policy begins, and one that releases what is ownerless at once: the
// hardest case, since no grace period covers up for a mistake.
const (
	policyHead = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\n"
	releaseNow = policyHead + "dryRun: false\ngracePeriod: 0s\nminAge: 0s\n"
)

// A scene is an empty cluster. The reaper and the plugin each speak to it
// through a proxy of their own, so that each can be held up while the other
// goes on; the test itself speaks to it directly.
type scene struct {
	*cluster.Cluster
	reaper     *reap.Reaper
	plugin     *plugin.Plugin
	toReaper   *proxy.Proxy
	toPlugin   *proxy.Proxy
	kubeconfig string // the reaper's
	namespace  string // of pods
	ledgerIn   string // the namespace of the ledger
	dir        string
}

// newScene prepares a scene that lasts as long as the test.
func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{Cluster: cluster.StartT(t), dir: t.TempDir()}
	s.ResetT(t)
	s.namespace = s.Namespace(t)
	s.ledgerIn = s.namespace
	s.toReaper, s.toPlugin = s.proxy(t), s.proxy(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	s.reaper, err = reap.New()
	must(err)
	s.kubeconfig, err = s.KubeconfigFor(s.toReaper.Config(s.Config))
	must(err)
	pluginKubeconfig, err := s.KubeconfigFor(s.toPlugin.Config(s.Config))
	must(err)
	s.plugin, err = plugin.New(s.dir, pluginKubeconfig)
	must(err)
	return s
}

// proxy starts a proxy that lasts as long as the test.
func (s *scene) proxy(t *testing.T) *proxy.Proxy {
	t.Helper()
	p, err := proxy.Start(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// args are the arguments of a run under a policy.
func (s *scene) args(t *testing.T, policy string, more ...string) []string {
	t.Helper()
	file := filepath.Join(s.dir, "policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"run", "--policy", file, "--kubeconfig", s.kubeconfig, "--context", cluster.ContextName,
		"--namespace", s.ledgerIn, "--output", "json", "--all",
	}
	return append(args, more...)
}

// start starts a run under a policy. The lock is not in its way: one that was
// killed leaves it for half a minute, and two at once do no harm.
func (s *scene) start(t *testing.T, policy string, more ...string) *reap.Process {
	t.Helper()
	s.unlock(t)
	return s.launch(t, policy, more...)
}

// unlock deletes the lock.
func (s *scene) unlock(t *testing.T) {
	t.Helper()
	err := s.Kube.CoordinationV1().Leases(s.ledgerIn).Delete(t.Context(), "ip-reaper", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// launch is start with the lock as it is.
func (s *scene) launch(t *testing.T, policy string, more ...string) *reap.Process {
	t.Helper()
	p, err := s.reaper.Start(t.Context(), s.args(t, policy, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run runs under a policy and fails the test unless the run exits with the
// code and, where it has begun, prints a report.
func (s *scene) run(t *testing.T, want int, policy string, more ...string) reap.Result {
	t.Helper()
	result, err := s.start(t, policy, more...).Wait()
	if err != nil {
		t.Fatal(err)
	}
	checkExit(t, want, result)
	return result
}

// converge runs once more, undisturbed, and fails the test unless that run
// says that it is done.
func (s *scene) converge(t *testing.T, policy string) {
	t.Helper()
	s.toReaper.Reset()
	s.run(t, reap.ExitDone, policy)
}

// checkExit compares the exit code, and shows the log of a run that went wrong.
func checkExit(t *testing.T, want int, result reap.Result) {
	t.Helper()
	if result.ExitCode != want {
		t.Errorf("exit code %d, want %d\n%s", result.ExitCode, want, result.Stderr)
	}
	if want != reap.ExitUsage && want != reap.ExitedByKill && result.Report == nil {
		t.Fatalf("no report\n%s", result.Stderr)
	}
}

// pod creates a pod as it is while its networks are being set up: Pending and
// without any address to show. Like all that hooks call too, which run on
// goroutines of the proxy, it does not end the test.
func (s *scene) pod(t *testing.T, name string) {
	t.Helper()
	if _, err := s.CreatePod(t.Context(), s.namespace, name, cluster.Phase("Pending")); err != nil {
		t.Error(err)
	}
}

// running makes the pod what it is when Multus and the kubelet are done.
func (s *scene) running(t *testing.T, name string, ips ...string) {
	t.Helper()
	err := s.UpdatePod(t.Context(), s.namespace, name, cluster.Phase("Running"),
		cluster.Networks(cluster.Attached(s.namespace+"/net", "net1", ips...)))
	if err != nil {
		t.Error(err)
	}
}

// dies removes the pod as a dead node leaves it: nobody calls CNI DEL.
func (s *scene) dies(t *testing.T, name string) {
	t.Helper()
	if err := s.DeletePod(t.Context(), s.namespace, name); err != nil {
		t.Error(err)
	}
}

// ref is how whereabouts names a pod of the scene.
func (s *scene) ref(name string) string { return s.namespace + "/" + name }

// add runs a real ADD for net1 of the pod and returns the address.
func (s *scene) add(ctx context.Context, n plugin.Network, pod, sandbox string) (string, error) {
	ips, err := s.plugin.Add(ctx, n, plugin.Pod{Namespace: s.namespace, Name: pod}, sandbox, "net1")
	if err != nil {
		return "", err
	}
	if len(ips) != 1 {
		return "", fmt.Errorf("ADD gave %v, want one address", ips)
	}
	return ips[0].String(), nil
}

// mustAdd is add for an ADD that has to succeed.
func (s *scene) mustAdd(t *testing.T, n plugin.Network, pod, sandbox string) string {
	t.Helper()
	ip, err := s.add(t.Context(), n, pod, sandbox)
	if err != nil {
		t.Fatal(err)
	}
	return ip
}

// pods creates many pods at once.
func (s *scene) pods(t *testing.T, names map[int]string) {
	t.Helper()
	err := parallel.Each(16, slices.Collect(maps.Values(names)), func(_ int, name string) error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.invalid/main:1"}}},
		}
		_, err := s.Kube.CoreV1().Pods(s.namespace).Create(t.Context(), pod, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
