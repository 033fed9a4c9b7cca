package ship_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubectl create job --from gives a Job all that the template has: deadlines, what to
// do about which exit code, when it is removed, labels, and the pod.
func TestJobsMadeFromACronJobHaveAllOfItsTemplate(t *testing.T) {
	c := fresh(t)
	for _, folder := range []string{"cronjob", "job"} {
		apply(t, c, shipped(t, folder))
	}
	for _, name := range []string{"ip-reaper", "ip-reaper-outage-plan", "ip-reaper-outage-now", "ip-reaper-outage-wait", "ip-reaper-outage-override"} {
		kubectl(t, "--kubeconfig="+c.Kubeconfig, "-n", home, "create", "job", "of-"+name, "--from=cronjob/"+name)
		job, err := c.Kube.BatchV1().Jobs(home).Get(t.Context(), "of-"+name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		from, err := c.Kube.BatchV1().CronJobs(home).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := from.Spec.JobTemplate
		for key, value := range want.Labels {
			if job.Labels[key] != value {
				t.Errorf("%s: label %s = %q, want %q", name, key, job.Labels[key], value)
			}
		}
		for key, value := range want.Spec.Template.Labels {
			if got := job.Spec.Template.Labels[key]; got != value {
				t.Errorf("%s: label %s of the pod = %q, want %q", name, key, got, value)
			}
		}
		if owner := metav1.GetControllerOf(job); owner == nil || owner.UID != from.UID {
			t.Errorf("%s: the Job belongs to %v", name, owner)
		}
		if job.Spec.TTLSecondsAfterFinished == nil || job.Spec.PodFailurePolicy == nil || job.Spec.ActiveDeadlineSeconds == nil {
			t.Errorf("%s: the Job has no ttl, no podFailurePolicy or no deadline: %+v", name, job.Spec)
		}
		if diff := cmp.Diff(stable(want.Spec), stable(job.Spec)); diff != "" {
			t.Errorf("%s (-template +job):\n%s", name, diff)
		}
	}
}

// stable is a spec without what the API server gives every Job by itself.
func stable(spec batchv1.JobSpec) batchv1.JobSpec {
	s := *spec.DeepCopy()
	s.Selector, s.Template.Labels = nil, nil
	s.Parallelism, s.Completions, s.CompletionMode = nil, nil, nil
	s.Suspend, s.ManualSelector, s.PodReplacementPolicy = nil, nil, nil
	return s
}

// Templates for outages run only when an operator makes a Job of them, and a Job tries
// again when the lock is taken, which the next start of a CronJob makes up for.
func TestOutageTemplatesDoNotStartAndTryTheLockAgain(t *testing.T) {
	for _, folder := range []string{"cronjob", "job"} {
		for name, c := range every[*batchv1.CronJob](t, render(t, shipped(t, folder))) {
			outage := folder == "job"
			if got := c.Spec.Suspend != nil && *c.Spec.Suspend; got != outage {
				t.Errorf("%s: suspended is %v", name, got)
			}
			want := []int32{2, 4, 5}
			if outage {
				want = []int32{2, 4}
			}
			rules := c.Spec.JobTemplate.Spec.PodFailurePolicy.Rules
			last := rules[len(rules)-1]
			if last.Action != batchv1.PodFailurePolicyActionFailJob || !cmp.Equal(last.OnExitCodes.Values, want) {
				t.Errorf("%s: %s on exit codes %v, want FailJob on %v", name, last.Action, last.OnExitCodes.Values, want)
			}
		}
	}
}
