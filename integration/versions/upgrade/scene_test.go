package upgrade_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/admission"
	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/memory"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/snapshot"
	"github.com/ip-reaper/ip-reaper/integration/kit/world"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A cast is a cluster before its first run: what the real plugins stored, and its pods.
type cast struct {
	Stores objects
	Pods   []corev1.Pod
}

// A scene is a cluster with a cast. Programs speak to its API server through a proxy, as the
// shipped accounts.
type scene struct {
	*testing.T
	*cluster.Cluster
	memory     memory.Memory
	proxy      *proxy.Proxy
	kubeconfig map[string]string // by the command; that of other commands is under ""
	before     map[string]string // the stores, byte for byte
	files      int
	dir        string
}

// newScene returns a scene with nothing that a program left.
func newScene(t *testing.T, c cast) *scene {
	t.Helper()
	s := &scene{T: t, Cluster: cluster.StartT(t), dir: t.TempDir()}
	s.ResetT(t)
	s.memory = memory.Memory{Cluster: s.Cluster, Namespace: world.Home}
	for _, namespace := range []string{world.Shop, world.Home} {
		s.must(s.CreateNamespace(t.Context(), namespace))
	}
	s.proxy, s.kubeconfig = s.access()
	_, err := calico.OnKubernetes(t.Context(), s.Cluster) // which says that its datastore is ready
	s.must(err)
	s.must(s.CreateNode(t.Context(), world.Node, true))
	for _, pod := range c.Pods {
		s.pod(pod)
	}
	s.must(c.Stores.store(t).Put(t.Context(), s.Cluster))
	s.before = s.stores().Bytes()
	return s
}

// access starts a proxy, and returns the kubeconfigs that lead through it.
func (s *scene) access() (*proxy.Proxy, map[string]string) {
	s.Helper()
	p, err := proxy.Start(s.Config)
	s.must(err)
	s.Cleanup(p.Stop)
	through := map[string]string{}
	for command, account := range map[string]string{"": admission.Reaper, "restore": admission.Restore} {
		config, err := admission.As(s.Cluster, account)
		s.must(err)
		through[command], err = s.KubeconfigFor(p.Config(config))
		s.must(err)
	}
	return p, through
}

// must ends the test at an error.
func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// sub runs a subtest in the same scene.
func (s *scene) sub(name string, test func()) {
	t := s.T
	defer func() { s.T = t }()
	t.Run(name, func(t *testing.T) {
		s.T = t
		test()
	})
}

// pod creates a pod as it was recorded.
func (s *scene) pod(recorded corev1.Pod) {
	s.Helper()
	pods := s.Kube.CoreV1().Pods(recorded.Namespace)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: recorded.Namespace, Name: recorded.Name, Labels: recorded.Labels, Annotations: recorded.Annotations,
	}, Spec: recorded.Spec}
	created, err := pods.Create(s.Context(), pod, metav1.CreateOptions{})
	s.must(err)
	created.Status = recorded.Status
	_, err = pods.UpdateStatus(s.Context(), created, metav1.UpdateOptions{})
	s.must(err)
}

func (s *scene) stores() snapshot.Store {
	s.Helper()
	return snapshot.TakeT(s, s.Cluster, nil)
}

// terms are a policy: what is dead is due after grace, but that of the pods slow-* after
// slow, and what a restore put back is held for hold.
func terms(grace, slow, hold time.Duration) string {
	return strings.Replace(world.Policy, "restoreHold: 0s", "restoreHold: "+hold.String(), 1) +
		fmt.Sprintf("gracePeriod: %s\nrules:\n- {match: {pods: [\"slow-*\"]}, gracePeriod: %s}\n", grace, slow)
}

// start starts a command of a program under a policy.
func (s *scene) start(p program, command, policy string, args ...string) *reap.Process {
	s.Helper()
	kubeconfig := s.kubeconfig[command]
	if kubeconfig == "" {
		kubeconfig = s.kubeconfig[""]
	}
	s.files++
	file := filepath.Join(s.dir, fmt.Sprintf("policy-%d.yaml", s.files))
	s.must(os.WriteFile(file, []byte(policy), 0o600))
	process, err := p.reaper("").Start(s.Context(), append([]string{
		command, "--kubeconfig=" + kubeconfig, "--context=" + cluster.ContextName, "--state-namespace=" + world.Home,
		"--policy=" + file, "-o=json",
	}, args...)...)
	s.must(err)
	return process
}

// end waits for the end of a command, which has to exit with the code.
func (s *scene) end(process *reap.Process, code int) reap.Result {
	s.Helper()
	result, err := process.Wait()
	s.must(err)
	if result.ExitCode != code {
		s.Fatalf("exit code %d, want %d\n%s%s", result.ExitCode, code, result.Stdout, result.Stderr)
	}
	return result
}

// run has a program run under a policy, and exit with the code.
func (s *scene) run(p program, code int, policy string, args ...string) report {
	s.Helper()
	return reportOf(s, s.end(s.start(p, "run", policy, append(args, "--all", world.InOrder)...), code))
}

// held starts a run, and returns when it has the lock and is about to list pods, which it
// does when the gate is opened. Other runs go through a proxy of their own then.
func (s *scene) held(p program, policy string) (*reap.Process, *proxy.Gate) {
	s.Helper()
	gate := proxy.NewGate()
	s.proxy.Before(proxy.First(1, proxy.On("list pods")), gate.Hook)
	process := s.start(p, "run", policy, "--all")
	select {
	case <-gate.Arrived():
	case <-time.After(time.Minute):
		s.Error("the run lists no pods")
	}
	s.proxy, s.kubeconfig = s.access()
	return process, gate
}

// lease returns the lock; its spec is empty if there is none.
func (s *scene) lease() coordinationv1.LeaseSpec {
	s.Helper()
	all, err := s.Kube.CoordinationV1().Leases(world.Home).List(s.Context(), metav1.ListOptions{})
	s.must(err)
	for _, lease := range all.Items {
		if lease.Name == kube.LockName {
			return lease.Spec
		}
	}
	return coordinationv1.LeaseSpec{}
}

// setLease replaces the lock.
func (s *scene) setLease(spec coordinationv1.LeaseSpec) {
	s.Helper()
	s.must(s.memory.Unlock(s.Context()))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: kube.LockName}, Spec: spec}
	_, err := s.Kube.CoordinationV1().Leases(world.Home).Create(s.Context(), lease, metav1.CreateOptions{})
	s.must(err)
}

// configMaps returns the ConfigMaps of the ledger and the journals, by name.
func (s *scene) configMaps() []corev1.ConfigMap {
	s.Helper()
	list, err := s.Kube.CoreV1().ConfigMaps(world.Home).List(s.Context(), metav1.ListOptions{})
	s.must(err)
	slices.SortFunc(list.Items, func(a, b corev1.ConfigMap) int { return strings.Compare(a.Name, b.Name) })
	return list.Items
}

// setConfigMaps replaces all ConfigMaps of the ledger and the journals.
func (s *scene) setConfigMaps(all []corev1.ConfigMap) {
	s.Helper()
	maps := s.Kube.CoreV1().ConfigMaps(world.Home)
	s.must(maps.DeleteCollection(s.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	for _, one := range all {
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: one.Name, Labels: one.Labels, Annotations: one.Annotations},
			Data:       one.Data, BinaryData: one.BinaryData, Immutable: one.Immutable,
		}
		_, err := maps.Create(s.Context(), cm, metav1.CreateOptions{})
		s.must(err)
	}
}
