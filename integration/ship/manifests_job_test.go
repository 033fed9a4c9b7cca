package ship_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// arguments returns the arguments of the pod's container. What its ConfigMaps hold on the
// API server is in files of a new folder, and the arguments lead there.
func arguments(t *testing.T, c *cluster.Cluster, pod corev1.PodSpec) (args []string) {
	t.Helper()
	account, err := c.ServiceAccount(t.Context(), reap.HomeOf(pod.ServiceAccountName), pod.ServiceAccountName)
	must(t, err)
	kubeconfig, err := c.KubeconfigFor(account)
	must(t, err)
	mayReadPolicy(t, c)
	dir, there := t.TempDir(), []string{"$(NAMESPACE)", home}
	for _, mount := range pod.Containers[0].VolumeMounts {
		there = append(there, mount.MountPath+"/", filepath.Join(dir, mount.Name)+"/")
	}
	for _, volume := range pod.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		cm, err := c.Kube.CoreV1().ConfigMaps(home).Get(t.Context(), volume.ConfigMap.Name, metav1.GetOptions{})
		must(t, err)
		must(t, os.Mkdir(filepath.Join(dir, volume.Name), 0o700))
		for name, text := range cm.Data {
			must(t, os.WriteFile(filepath.Join(dir, volume.Name, name), []byte(text), 0o600))
		}
	}
	for _, arg := range pod.Containers[0].Args {
		args = append(args, strings.NewReplacer(there...).Replace(arg))
		if file, ok := strings.CutPrefix(args[len(args)-1], "--policy="); ok && args[0] == "run" {
			policy, err := os.ReadFile(file)
			must(t, err)
			args = append(args, reap.ByFile(string(policy))...)
		}
	}
	if !slices.Contains(args, "--dry-run") { // a run that may release remembers anyway
		args = slices.DeleteFunc(args, func(arg string) bool { return arg == "--remember" })
	}
	return append(args, "--kubeconfig="+kubeconfig, "--context="+cluster.ContextName)
}

// mayReadPolicy lets the account of the CronJob read the installed policy, as the program does outside of
// a pod.
func mayReadPolicy(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	meta, read := metav1.ObjectMeta{Name: "policy"}, authorizationv1.ResourceAttributes{Verb: "get", Resource: "configmaps", Namespace: home, Name: state.PolicyName}
	_, err := c.Kube.RbacV1().Roles(home).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{read.Resource}, ResourceNames: []string{read.Name}, Verbs: []string{read.Verb}},
	}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return
	}
	must(t, err)
	_, err = c.Kube.RbacV1().RoleBindings(home).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: reap.RunAccount, Namespace: home}},
	}, metav1.CreateOptions{})
	must(t, err)
	waitUntilMay(t, c, read, true)
}

// runPod runs the pod's container. Its report is in JSON.
func runPod(t *testing.T, c *cluster.Cluster, pod corev1.PodSpec) reap.Result {
	t.Helper()
	return runReaper(t, append(arguments(t, c, pod), "--output=json")...)
}

func runReaper(t *testing.T, args ...string) reap.Result {
	t.Helper()
	r, err := reap.New()
	must(t, err)
	result, err := r.Run(t.Context(), args...)
	must(t, err)
	return result
}

// writeLedger leaks addresses of pods that do not exist, has a run remember them and release
// none, and returns the ledger. There is one pod that does exist: a run refuses a cluster
// without pods.
func writeLedger(t *testing.T, c *cluster.Cluster, pods ...plugin.Pod) map[string]string {
	t.Helper()
	whereabouts, err := plugin.New(c.Dir, c.Kubeconfig)
	must(t, err)
	for _, pod := range pods {
		_, err := whereabouts.Add(t.Context(), plugin.Network{Range: "10.99.0.0/24"}, pod, calico.NewContainerID(), "net1")
		must(t, err)
	}
	_, err = c.CreatePod(t.Context(), c.Namespace(t), "bystander")
	must(t, err)
	result := runReaper(t, "--dry-run=false", "--grace-period=1h", "--min-age=0s", "--kubeconfig="+c.Kubeconfig,
		"--context="+cluster.ContextName, "--state-namespace="+home)
	written := ledger(t, c)
	if result.ExitCode != reap.ExitDone || len(written[reap.LedgerName]) == 0 {
		t.Fatalf("exit code %d, ledger %v\n%s", result.ExitCode, written, result.Stderr)
	}
	return written
}

// ledger returns what the ConfigMaps of the ledger hold.
func ledger(t *testing.T, c *cluster.Cluster) map[string]string {
	t.Helper()
	list, err := c.Kube.CoreV1().ConfigMaps(home).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	all := map[string]string{}
	for _, cm := range list.Items {
		if strings.HasPrefix(cm.Name, reap.LedgerName) {
			all[cm.Name] = string(cm.BinaryData[reap.LedgerKey])
		}
	}
	return all
}

// leaked is a pod that does not exist.
var leaked = plugin.Pod{Namespace: "shop", Name: "leaked"}
