package ship_test

import (
	"maps"
	"strings"
	"testing"

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

// The namespace that is shipped admits the pods that are shipped, and none of them
// without one of the fields that it wants to see.
func TestNamespaceAdmitsThePodsAndNoneThatLacksAField(t *testing.T) {
	c := fresh(t)
	jobs := map[string]*batchv1.CronJob{}
	for _, o := range []overlay{
		{Resources: []string{"cronjob"}},
		{Resources: []string{"job"}, Components: []string{"calico-etcd", "metrics"}},
	} {
		folder := o.write(t)
		apply(t, c, folder)
		maps.Copy(jobs, every[*batchv1.CronJob](t, render(t, folder)))
	}
	if len(jobs) != 5 {
		t.Errorf("%d CronJobs, want 5", len(jobs))
	}
	for name, job := range jobs {
		if err := create(t, c, podSpec(job)); err != nil {
			t.Errorf("the pod of %s is refused: %v", name, err)
		}
		for field, takeAway := range unsafe {
			spec := podSpec(job.DeepCopy())
			takeAway(&spec)
			err := create(t, c, spec)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) || !strings.Contains(err.Error(), field) {
				t.Errorf("the pod of %s without %s: %v, want that Pod Security refuses it", name, field, err)
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
