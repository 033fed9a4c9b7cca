package ship_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
)

// The conditions that the Job controller sets to true, in its order.
var jobEnds = map[string][]batchv1.JobConditionType{
	"succeeded": {batchv1.JobSuccessCriteriaMet, batchv1.JobComplete},
	"failed":    {batchv1.JobFailureTarget, batchv1.JobFailed},
}

// Each line of the pages that waits for a Job ends when that Job has succeeded, and when
// it has failed, and not before.
func TestWaitingForAJobEndsWhenItFails(t *testing.T) {
	c := fresh(t)
	apply(t, c, shipped(t, "all"))
	waits := map[string]string{} // by Job
	for _, p := range pages(t) {
		for _, line := range p.commands() {
			if _, job, ok := strings.Cut(line.typed, " wait "); ok && strings.HasPrefix(p.path, "docs/") {
				_, job, _ = strings.Cut(job, "job/")
				waits[job] = line.typed
			}
		}
	}
	if len(waits) < 3 {
		t.Fatalf("the pages wait for %v, want at least three Jobs", waits)
	}
	for job, typed := range waits {
		for name, conditions := range jobEnds {
			t.Run(job+" "+name, func(t *testing.T) { waitFor(t, c, job, typed, conditions) })
		}
	}
}

func waitFor(t *testing.T, c *cluster.Cluster, job, typed string, conditions []batchv1.JobConditionType) {
	t.Helper()
	kubectl(t, "--kubeconfig="+c.Kubeconfig, "-n", home, "create", "job", job, "--from=cronjob/ip-reaper-outage-plan")
	defer kubectl(t, "--kubeconfig="+c.Kubeconfig, "-n", home, "delete", "job", job, "--cascade=background")
	line := strings.NewReplacer("kubectl ", kubectlPath(t)+" --kubeconfig="+c.Kubeconfig+" ", "--timeout=5m", "--timeout=20s").Replace(typed)

	early := strings.Replace(line, "--timeout=20s", "--timeout=1s", 1)
	if out, err := exec.CommandContext(t.Context(), "bash", "-c", early).CombinedOutput(); err == nil || !strings.Contains(string(out), "timed out") {
		t.Errorf("%s\nends before the Job does: %v\n%s", typed, err, out)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := exec.CommandContext(t.Context(), "bash", "-c", line).CombinedOutput()
		ended <- err
	}()
	end(t, c, job, conditions)
	if err := <-ended; err != nil {
		t.Errorf("%s\ndoes not end with the Job: %v", typed, err)
	}
}

// end does what the Job controller does at the end of a Job.
func end(t *testing.T, c *cluster.Cluster, name string, conditions []batchv1.JobConditionType) {
	t.Helper()
	jobs := c.Kube.BatchV1().Jobs(home)
	job, err := jobs.Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	now := metav1.NewTime(time.Now())
	job.Status.StartTime = &now
	for _, kind := range conditions {
		if kind == batchv1.JobComplete {
			job.Status.CompletionTime, job.Status.Succeeded = &now, 1
		}
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	_, err = jobs.UpdateStatus(t.Context(), job, metav1.UpdateOptions{})
	must(t, err)
}
