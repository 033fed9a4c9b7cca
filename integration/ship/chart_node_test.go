package ship_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/policy"
)

// nodeOnly are the objects of the DaemonSet, as comparison returns them.
func nodeOnly(t *testing.T, objects map[string]unstructured.Unstructured) map[string]any {
	t.Helper()
	all := comparison(t, objects)
	maps.DeleteFunc(all, func(key string, _ any) bool { return !strings.Contains(key, "ip-reaper-node") })
	return all
}

// In Kustomize and in the chart, the runtime of a platform takes the place of containerd, as the page
// shows.
func TestRendersTheDaemonSetOfKustomize(t *testing.T) {
	for _, tt := range []struct{ component, values string }{
		{"node", ""},
		{"node-release", "mode: release"},
		{"node-api-server", "apiServer: true"},
		{"node-kindnet", "dataDirs: [/run/cni-ipam-state]"},
		{ofThePage(t, "node-k3s"), "runtimeSocket: /run/k3s/containerd/containerd.sock, confDir: /var/lib/rancher/k3s/agent/etc/cni/net.d"},
	} {
		t.Run(filepath.Base(tt.component), func(t *testing.T) {
			components := slices.Compact([]string{"node", tt.component})
			want := nodeOnly(t, decode(t, build(t, of(components...).write(t))))
			got := nodeOnly(t, theRelease.objects(t, "node: {enabled: true, "+tt.values+"}"))
			// Variables, mounts and volumes may be in any order.
			byText := cmpopts.SortSlices(func(a, b any) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
			if diff := cmp.Diff(want, got, byText); diff != "" || len(got) < 5 {
				t.Errorf("%d objects (-kustomize +helm):\n%s", len(got), diff)
			}
		})
	}
}

// ofThePage writes a component that docs/node.md shows, and returns its path from those that are
// shipped.
func ofThePage(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(deploy, "..", "docs", "node.md"))
	must(t, err)
	_, text, found := strings.Cut(string(page), "# "+name+"/kustomization.yaml\n")
	if !found {
		t.Fatalf("the page has no component %s", name)
	}
	text, _, _ = strings.Cut(text, "```")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, name, "kustomization.yaml"), []byte(text), 0o600))
	path, err := filepath.Rel(shipped(t, "components"), filepath.Join(dir, name))
	must(t, err)
	return path
}

// The pod gets the folder of the runtime's socket, or the socket alone where its folder is
// that of all runtimes: never all of /run.
func TestDaemonSetHasTheSocketThatIsNamed(t *testing.T) {
	for socket, want := range map[string]string{
		"/run/crio/crio.sock":       "Directory /run/crio",
		"/var/run/cri-dockerd.sock": "Socket /var/run/cri-dockerd.sock",
	} {
		objects := theRelease.objects(t, "node: {enabled: true, runtimeSocket: "+socket+"}")
		pod := convert[appsv1.DaemonSet](t, objects["DaemonSet ip-reaper-node/ip-reaper-node"]).Spec.Template.Spec
		endpoint := corev1.EnvVar{Name: "CONTAINER_RUNTIME_ENDPOINT", Value: "unix://" + socket}
		if !slices.Contains(pod.Containers[0].Env, endpoint) {
			t.Errorf("there is no %v", endpoint)
		}
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "runtime" })
		if i < 0 {
			t.Fatalf("%s: the pod has no volume of the runtime", socket)
		}
		if v := pod.Volumes[i]; fmt.Sprint(*v.HostPath.Type, " ", v.HostPath.Path) != want {
			t.Errorf("the pod gets %v, want %s", v.HostPath, want)
		}
	}
}

// Each value for the DaemonSet has its effect.
func TestNodeValuesArriveInTheDaemonSet(t *testing.T) {
	const text = `
node:
  enabled: true
  every: 1h
  policy: {gracePeriod: 1h, limits: {maxReleases: 7}}
  confDir: /var/lib/rancher/k3s/agent/etc/cni/net.d
  metricsFolder: /var/lib/node_exporter
  seLinuxType: spc_t
  nodeSelector: {pool: a}
  tolerations: []
  priorityClassName: ""
priorityClassName: of-jobs
podLabels: {team: net}
`
	objects := theRelease.objects(t, text)
	set := convert[appsv1.DaemonSet](t, objects["DaemonSet ip-reaper-node/ip-reaper-node"])
	pod := set.Spec.Template.Spec
	args := strings.Join(pod.Containers[0].Args, " ")
	mounts := make(map[string]string)
	for _, v := range pod.Volumes {
		if v.HostPath != nil {
			mounts[v.Name] = v.HostPath.Path
		}
	}
	for _, tt := range []struct {
		field     string
		got, want any
	}{
		{"arguments", args, "node --every=1h --policy=/etc/ip-reaper/policy.yaml --remember --metrics-file=/var/lib/node_exporter/ip-reaper.prom"},
		{"confDir", mounts["conf"], "/var/lib/rancher/k3s/agent/etc/cni/net.d"},
		{"metricsFolder", mounts["metrics"], "/var/lib/node_exporter"},
		{"seLinuxType", pod.SecurityContext.SELinuxOptions, &corev1.SELinuxOptions{Type: "spc_t"}},
		{"nodeSelector", pod.NodeSelector, map[string]string{"kubernetes.io/os": "linux", "pool": "a"}},
		{"tolerations", len(pod.Tolerations), 0},
		{"priorityClassName", pod.PriorityClassName, ""},
		{"quotas", len(objects["ResourceQuota ip-reaper-node/ip-reaper-node"].Object), 0},
		{"label", set.Spec.Template.Labels["team"], "net"},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.field, diff)
		}
	}
	p := loadPolicies(t, objects["ConfigMap ip-reaper-node/ip-reaper-node-policy"])["policy.yaml"]
	want := policy.Default()
	want.GracePeriod = p.GracePeriod
	want.Limits.MaxReleases, want.Limits.MaxFraction = new(7), new(1.0)
	if diff := cmp.Diff(want, p); diff != "" || fmt.Sprint(p.GracePeriod) != "1h" {
		t.Errorf("policy with %v (-want +got):\n%s", p.GracePeriod, diff)
	}
}

// The API server takes the DaemonSet. Its namespace admits the pod that it makes, and its
// priority class. One that is restricted does not, nor does one without the quota.
func TestNamespaceOfTheDaemonSetAdmitsItsPod(t *testing.T) {
	c := fresh(t)
	to := target{"a.b", c.Namespace(t)}
	const text, of = "node: {enabled: true, apiServer: true}", "a-b-ip-reaper-node"
	applyManifests(t, c, to.manifests(t, text))
	if out, err := c.Kubectl(t.Context(), "", "label", "namespace", to.namespace, "pod-security.kubernetes.io/enforce=restricted"); err != nil {
		t.Fatalf("label: %v\n%s", err, out)
	}
	set := convert[appsv1.DaemonSet](t, to.objects(t, text)["DaemonSet "+of+"/a.b-ip-reaper-node"])
	admit := func(namespace string) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"}, Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Spec.ServiceAccountName = ""
		_, err := c.Kube.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	quotas := c.Kube.CoreV1().ResourceQuotas(of)
	quota, err := quotas.Get(t.Context(), "a.b-ip-reaper-node", metav1.GetOptions{})
	must(t, err)
	// As the controller of quotas does.
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}
	if _, err := quotas.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.AwaitT(t, "the namespace of the DaemonSet admits its pod", func() bool { return admit(of) == nil })
	if err := admit(c.Namespace(t)); err == nil || !strings.Contains(err.Error(), "insufficient quota to match these scopes") {
		t.Errorf("a namespace without a quota: %v, want that the class is refused", err)
	}
	if err := admit(to.namespace); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
		t.Errorf("the namespace of the release: %v, want that Pod Security refuses it", err)
	}
}
