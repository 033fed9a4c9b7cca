package kit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

func TestCreatedPodLooksAsKubeletAndMultusLeaveIt(t *testing.T) {
	c := cluster.StartT(t)
	namespace := c.Namespace(t)
	_, err := c.CreatePod(t.Context(), namespace, "web-0",
		cluster.OnNode("worker-2"),
		cluster.PodIPs("10.244.9.9", "fd00::9"),
		cluster.Networks(cluster.Attached("nstest/net", "net1", "10.10.0.4")))
	if err != nil {
		t.Fatal(err)
	}
	pod, err := c.Kube.CoreV1().Pods(namespace).Get(t.Context(), "web-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	type looks struct {
		Node, IP, Networks string
		IPs                []corev1.PodIP
		Phase              corev1.PodPhase
	}
	want := looks{"worker-2", "10.244.9.9", `[
    {
        "name": "cbr0",
        "interface": "eth0",
        "ips": [
            "10.244.9.9",
            "fd00::9"
        ],
        "default": true,
        "dns": {}
    },
    {
        "name": "nstest/net",
        "interface": "net1",
        "ips": [
            "10.10.0.4"
        ],
        "dns": {}
    }
]`, []corev1.PodIP{{IP: "10.244.9.9"}, {IP: "fd00::9"}}, corev1.PodRunning}
	got := looks{
		pod.Spec.NodeName, pod.Status.PodIP, pod.Annotations[cluster.NetworkStatusAnnotation],
		pod.Status.PodIPs, pod.Status.Phase,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
}

func TestDeletedPodIsGoneAtOnce(t *testing.T) {
	c := cluster.StartT(t)
	namespace := c.Namespace(t)
	if _, err := c.CreatePod(t.Context(), namespace, "web-0"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is gone already
		if err := c.DeletePod(t.Context(), namespace, "web-0"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Kube.CoreV1().Pods(namespace).Get(t.Context(), "web-0", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("get pod: %v, want not found", err)
	}
}

func TestVersionsTellAWriteFromNone(t *testing.T) {
	c := cluster.StartT(t)
	namespace := c.Namespace(t)
	versions := func() map[string]string {
		t.Helper()
		v, err := c.Versions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if _, err := c.CreatePod(t.Context(), namespace, "web-0"); err != nil {
		t.Fatal(err)
	}
	before := versions()
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("nothing was written, versions (-before +after):\n%s", diff)
	}
	if err := c.UpdatePod(t.Context(), namespace, "web-0", cluster.Networks()); err != nil {
		t.Fatal(err)
	}
	after := versions()
	key := "pods/" + namespace + "/web-0"
	if before[key] == "" || before[key] == after[key] {
		t.Errorf("version of %s was %q and is %q after a write", key, before[key], after[key])
	}
}

func TestResetLeavesWhatTheClusterStartedWith(t *testing.T) {
	c := cluster.StartT(t)
	c.ResetT(t)
	ctx := t.Context()
	before, err := c.Versions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const namespace = "shop"
	if err := c.CreateNamespace(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreatePod(ctx, namespace, "web-0"); err != nil {
		t.Fatal(err)
	}
	if err := c.CreateNode(ctx, "worker-9", false); err != nil {
		t.Fatal(err)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "ledger", Finalizers: []string{"example.com/hold"},
	}}
	if _, err := c.Kube.CoreV1().ConfigMaps("kube-system").Create(ctx, config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cronJob := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "reaper"},
		Spec: batchv1.CronJobSpec{Schedule: "@daily", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "main", Image: "registry.invalid/main:1"}},
			}},
		}}},
	}
	if _, err := c.Kube.BatchV1().CronJobs(namespace).Create(ctx, cronJob, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reaper"}}
	if _, err := c.Kube.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	after, err := c.Versions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("versions (-before +after):\n%s", diff)
	}
	// A namespace that was there before can be used again at once.
	if err := c.CreateNamespace(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreatePod(ctx, namespace, "web-0"); err != nil {
		t.Error(err)
	}
}

func TestIdentitiesHaveNoRightsOfTheirOwn(t *testing.T) {
	c := cluster.StartT(t)
	namespace := c.Namespace(t)
	for _, tt := range []struct {
		name string
		as   func() (*rest.Config, error)
		want string
	}{
		{
			"service account", func() (*rest.Config, error) {
				return c.ServiceAccount(t.Context(), namespace, "reaper")
			}, `"system:serviceaccount:` + namespace + `:reaper"`,
		},
		{"user", func() (*rest.Config, error) { return c.User("jane", "operators") }, `"jane"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := tt.as()
			if err != nil {
				t.Fatal(err)
			}
			kube := fromFile(t, c, cfg)
			_, err = kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
			want := `pods is forbidden: User ` + tt.want +
				` cannot list resource "pods" in API group "" in the namespace "` + namespace + `"`
			if !apierrors.IsForbidden(err) || err.Error() != want {
				t.Errorf("list pods: %v, want %s", err, want)
			}
		})
	}
}

// fromFile returns a client that knows nothing but the kubeconfig file.
func fromFile(t *testing.T, c *cluster.Cluster, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	path, err := c.KubeconfigFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(loaded)
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cluster.Start(ctx, cluster.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("start: %v, want %v", err, context.Canceled)
	}
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
