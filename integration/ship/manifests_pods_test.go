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

// The namespace that is shipped admits the pods that are shipped, and none of them
// without one of the fields that it wants to see.
func TestNamespaceAdmitsThePodsAndNoneThatLacksAField(t *testing.T) {
	c := fresh(t)
	apply(t, c, of("outage").write(t))
	for _, o := range overlays {
		for name, job := range everyPod(t, render(t, o.write(t))) {
			if err := create(t, c, podSpec(job)); err != nil {
				t.Errorf("%v: the pod of %s is refused: %v", o.Components, name, err)
			}
			for field, takeAway := range unsafe {
				spec := podSpec(job.DeepCopy())
				takeAway(&spec)
				err := create(t, c, spec)
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

// create has the API server try to create a pod.
func create(t *testing.T, c *cluster.Cluster, spec corev1.PodSpec) error {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "ip-reaper-"}, Spec: spec}
	_, err := c.Kube.CoreV1().Pods(home).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}
