package ship_test

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// rolesTimeout is how long the API server may take to go by roles that were just
// applied.
const rolesTimeout = 30 * time.Second

// controllers does what the Job controller and the kubelet do: it runs what every
// new Job asks for, with the rights of its account and the policy of its volume.
func (o *operator) controllers() {
	o.Helper()
	for _, namespace := range []string{home, reap.HomeOf(reap.OutageAccount)} {
		jobs, err := o.cluster.Kube.BatchV1().Jobs(namespace).List(o.Context(), metav1.ListOptions{})
		must(o, err)
		for _, job := range jobs.Items {
			if job.Status.CompletionTime == nil {
				o.runJob(&job)
			}
		}
	}
}

// runJob runs the Job until it succeeds, and says so in the cluster.
func (o *operator) runJob(job *batchv1.Job) {
	o.Helper()
	template := job.Spec.Template
	args, message := o.arguments(job), filepath.Join(o.TempDir(), "termination-log")
	must(o, os.WriteFile(message, nil, 0o600))
	reaper, err := reap.New()
	must(o, err)
	reaper.Dir = o.dir
	for _, env := range template.Spec.Containers[0].Env {
		if strings.HasPrefix(env.Name, "IP_REAPER_") {
			reaper.Env = append(reaper.Env, env.Name+"="+env.Value)
		}
	}
	args = append(args, "--termination-log="+message)

	var result reap.Result
	for deadline := time.Now().Add(rolesTimeout); ; {
		result, err = reaper.Run(o.Context(), args...)
		must(o, err)
		if result.ExitCode == reap.ExitDone {
			break
		}
		if time.Now().After(deadline) {
			o.Fatalf("Job %s: ip-reaper %s exits with %d\n%s%s", job.Name, strings.Join(args, " "), result.ExitCode, result.Stdout, result.Stderr)
		}
	}
	o.logs[job.Name] = result.Stderr + result.Stdout
	word, err := os.ReadFile(message)
	must(o, err)

	pods := o.cluster.Kube.CoreV1().Pods(job.Namespace)
	pod, err := pods.Create(o.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: job.Name + "-", Labels: template.Labels}, Spec: template.Spec,
	}, metav1.CreateOptions{})
	must(o, err)
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name:  template.Spec.Containers[0].Name,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: string(word)}},
	}}
	_, err = pods.UpdateStatus(o.Context(), pod, metav1.UpdateOptions{})
	must(o, err)

	now := metav1.Now()
	job.Status = batchv1.JobStatus{Succeeded: 1, StartTime: &now, CompletionTime: &now}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now,
		})
	}
	_, err = o.cluster.Kube.BatchV1().Jobs(job.Namespace).UpdateStatus(o.Context(), job, metav1.UpdateOptions{})
	must(o, err)
}

// arguments are those of the Job's container. The operator does not sit out the minute
// between the two looks of a Job for an outage.
func (o *operator) arguments(job *batchv1.Job) []string {
	o.Helper()
	args := arguments(o.T, o.cluster, job.Spec.Template.Spec)
	for i := range args {
		args[i] = strings.Replace(args[i], "--grace-period=60s", "--grace-period=1s", 1)
	}
	return args
}
