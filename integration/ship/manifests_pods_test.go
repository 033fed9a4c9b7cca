package ship_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// unsafe takes away, one by one, what Pod Security restricted wants to see.
var unsafe = map[string]func(*corev1.PodSpec){
	"runAsNonRoot":             func(s *corev1.PodSpec) { s.SecurityContext.RunAsNonRoot = nil },
	"seccompProfile":           func(s *corev1.PodSpec) { s.SecurityContext.SeccompProfile = nil },
	"allowPrivilegeEscalation": func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil },
	"capabilities":             func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.Capabilities = nil },
}

// overlays have every pod that is shipped, in every form.
var overlays = []overlay{
	{Resources: []string{"cronjob"}},
	{Resources: []string{"cronjob"}, Components: []string{"network-policy", "openshift", "calico-etcd", "metrics"}},
	{Resources: []string{"job"}, Components: []string{"calico-etcd", "metrics"}},
	{Resources: []string{"job"}, Components: []string{"openshift"}},
}

// everyPod returns the CronJobs of an overlay. There must be some.
func everyPod(t *testing.T, all objects) map[string]*batchv1.CronJob {
	t.Helper()
	jobs := every[*batchv1.CronJob](t, all)
	if len(jobs) == 0 {
		t.Error("the overlay has no CronJob")
	}
	return jobs
}

// The namespaces that are shipped admit the pods that are shipped, and that of the CronJob none of them
// without one of the fields that it wants to see. The outage Jobs have the network of the node, which takes
// them a namespace of their own, and nothing else that the other would refuse.
func TestNamespaceAdmitsThePodsAndNoneThatLacksAField(t *testing.T) {
	c := fresh(t)
	apply(t, c, of("outage").write(t))
	for _, o := range overlays {
		for name, job := range everyPod(t, render(t, o.write(t))) {
			if err := create(t, c, job.Namespace, podSpec(job)); err != nil {
				t.Errorf("%v: the pod of %s is refused: %v", o.Components, name, err)
			}
			if err := create(t, c, home, podSpec(job)); podSpec(job).HostNetwork != (err != nil && strings.Contains(err.Error(), "host namespaces")) {
				t.Errorf("%v: the pod of %s in the namespace %s: %v", o.Components, name, home, err)
			}
			for field, takeAway := range unsafe {
				spec := podSpec(job.DeepCopy())
				spec.HostNetwork = false
				if err := create(t, c, home, spec); err != nil {
					t.Errorf("%v: the pod of %s without the host network: %v", o.Components, name, err)
				}
				takeAway(&spec)
				err := create(t, c, home, spec)
				if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) || !strings.Contains(err.Error(), field) {
					t.Errorf("%v: the pod of %s without %s: %v, want that Pod Security refuses it", o.Components, name, field, err)
				}
			}
		}
	}
}

// OpenShift's restricted-v2 admits the pods with components/openshift. Without it, only the
// user and the group are in the way. No pod can write into its file systems.
func TestOpenShiftAdmitsThePodsWithItsComponent(t *testing.T) {
	for _, o := range overlays {
		for name, job := range everyPod(t, render(t, o.write(t))) {
			spec := podSpec(job)
			var want []string
			if named := !slices.Contains(o.Components, "openshift"); named {
				want = []string{"runAsUser of ip-reaper is not in the range"}
			} else if spec.SecurityContext.RunAsGroup != nil {
				t.Errorf("%v: the pod of %s names a group", o.Components, name)
			}
			if diff := cmp.Diff(want, violations(spec)); diff != "" {
				t.Errorf("%v: violations of %s (-want +got):\n%s", o.Components, name, diff)
			}
		}
	}
}

// The outage Jobs start where other pods may not, but never on a node that does not answer: the scheduler
// prefers empty nodes. The CronJob starts where others do.
func TestOutageJobsStartWhereOthersCannot(t *testing.T) {
	for name, job := range everyPod(t, render(t, of("outage").write(t))) {
		for key, outage := range map[string]bool{
			"node-role.kubernetes.io/control-plane":     true,
			corev1.TaintNodeNetworkUnavailable:          true,
			corev1.TaintNodeMemoryPressure:              true,
			corev1.TaintNodeDiskPressure:                false,
			corev1.TaintNodePIDPressure:                 false,
			corev1.TaintNodeNotReady:                    false,
			corev1.TaintNodeUnreachable:                 false,
			corev1.TaintNodeOutOfService:                false,
			"node.cloudprovider.kubernetes.io/shutdown": false,
		} {
			tolerates := slices.ContainsFunc(podSpec(job).Tolerations, func(one corev1.Toleration) bool {
				return one.Key == "" || one.Key == key
			})
			if want := outage && name != "ip-reaper"; tolerates != want {
				t.Errorf("%s tolerates %s: %t, want %t", name, key, tolerates, want)
			}
		}
	}
}

// With the component, the CronJob has the network of its node, and its namespace admits that.
func TestNamespaceAdmitsTheHostNetworkWithItsComponent(t *testing.T) {
	c := fresh(t)
	with := of("outage", "host-network").write(t)
	apply(t, c, with)
	for name, job := range everyPod(t, render(t, with)) {
		if !podSpec(job).HostNetwork {
			t.Errorf("%s does not have the network of its node", name)
		}
		if err := create(t, c, job.Namespace, podSpec(job)); err != nil {
			t.Errorf("the pod of %s is refused: %v", name, err)
		}
	}
	apply(t, c, of("outage").write(t)) // and takes the label back
	spec := podSpec(everyPod(t, render(t, with))["ip-reaper"])
	if err := create(t, c, home, spec); !apierrors.IsForbidden(err) {
		t.Errorf("without the component, the pod is created: %v", err)
	}
}

// create has the API server try to create a pod.
func create(t *testing.T, c *cluster.Cluster, namespace string, spec corev1.PodSpec) error {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "ip-reaper-"}, Spec: spec}
	_, err := c.Kube.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}
