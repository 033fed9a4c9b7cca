package deploy_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// cronJob returns the CronJob, which has the pod template of all Jobs.
func cronJob(t *testing.T) *batchv1.CronJob {
	t.Helper()
	return find[*batchv1.CronJob](t, installation(t, "plan"), name)
}

// container returns the pod template's only container.
func container(t *testing.T) corev1.Container {
	t.Helper()
	containers := cronJob(t).Spec.JobTemplate.Spec.Template.Spec.Containers
	if len(containers) != 1 {
		t.Fatalf("%d containers, want 1", len(containers))
	}
	return containers[0]
}

func TestCronJobRunsOneAtATimeAndEnds(t *testing.T) {
	spec := cronJob(t).Spec
	job := spec.JobTemplate.Spec

	if spec.ConcurrencyPolicy != batchv1.ForbidConcurrent {
		t.Errorf("concurrencyPolicy = %q, want Forbid", spec.ConcurrencyPolicy)
	}
	// The controller looks about every 10 s. Without a deadline, it gives up for
	// good when it has missed 100 starts.
	if spec.StartingDeadlineSeconds == nil || *spec.StartingDeadlineSeconds < 10 {
		t.Errorf("startingDeadlineSeconds = %v, want at least 10", spec.StartingDeadlineSeconds)
	}
	if spec.TimeZone == nil || *spec.TimeZone == "" {
		t.Error("timeZone is not set")
	}
	if job.BackoffLimit == nil || *job.BackoffLimit > 2 {
		t.Errorf("backoffLimit = %v, want at most 2", job.BackoffLimit)
	}
	if job.TTLSecondsAfterFinished == nil {
		t.Error("ttlSecondsAfterFinished is not set")
	}

	if job.ActiveDeadlineSeconds == nil {
		t.Fatal("activeDeadlineSeconds is not set")
	}
	deadline := time.Duration(*job.ActiveDeadlineSeconds) * time.Second
	timeout, err := time.ParseDuration(argument(container(t), "--timeout"))
	if err != nil {
		t.Fatal(err)
	}
	if deadline <= timeout {
		t.Errorf("the job is killed after %v, before the run's own --timeout of %v", deadline, timeout)
	}
	if every := interval(t, spec.Schedule); deadline >= every {
		t.Errorf("the job may last %v, longer than the interval of %v", deadline, every)
	}
}

func TestJobIsNotRetriedAfterPermanentFailures(t *testing.T) {
	job := cronJob(t).Spec.JobTemplate.Spec

	// The API refuses a podFailurePolicy with any other restart policy.
	if got := job.Template.Spec.RestartPolicy; got != corev1.RestartPolicyNever {
		t.Errorf("restartPolicy = %q, want Never", got)
	}
	if job.PodFailurePolicy == nil {
		t.Fatal("podFailurePolicy is not set")
	}
	var disruption, codes bool
	for _, rule := range job.PodFailurePolicy.Rules {
		for _, condition := range rule.OnPodConditions {
			if condition.Type == corev1.DisruptionTarget && rule.Action == batchv1.PodFailurePolicyActionIgnore {
				disruption = true
			}
		}
		if on := rule.OnExitCodes; on != nil && rule.Action == batchv1.PodFailurePolicyActionFailJob {
			codes = on.ContainerName != nil && *on.ContainerName == container(t).Name &&
				on.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn &&
				slices.Equal(on.Values, []int32{2, 4, 5})
		}
	}
	if !disruption {
		t.Error("a disruption counts as a failure")
	}
	if !codes {
		t.Error("exit codes 2, 4 and 5 of the container do not fail the job at once")
	}
}

// argument returns the value of a --flag=value.
func argument(c corev1.Container, flag string) string {
	for _, arg := range c.Args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			return value
		}
	}
	return ""
}

// interval returns the shortest time between two starts. The schedule must list
// minutes of every hour.
func interval(t *testing.T, schedule string) time.Duration {
	t.Helper()
	minutes, ok := strings.CutSuffix(schedule, " * * * *")
	if !ok {
		t.Fatalf("schedule %q is not a list of minutes", schedule)
	}
	var starts []int
	for text := range strings.SplitSeq(minutes, ",") {
		minute, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("schedule %q is not a list of minutes", schedule)
		}
		starts = append(starts, minute)
	}
	slices.Sort(starts)
	shortest := 60 + starts[0] - starts[len(starts)-1]
	for i := 1; i < len(starts); i++ {
		shortest = min(shortest, starts[i]-starts[i-1])
	}
	return time.Duration(shortest) * time.Minute
}
