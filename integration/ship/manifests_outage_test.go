package ship_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	jobs "github.com/ip-reaper/ip-reaper/integration/kit/job"
	"github.com/ip-reaper/ip-reaper/integration/kit/memory"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// outageJobs are the pods of the templates of an outage, by the end of their names.
func outageJobs(t *testing.T) map[string]corev1.PodSpec {
	t.Helper()
	pods := map[string]corev1.PodSpec{}
	for name, job := range every[*batchv1.CronJob](t, render(t, shipped(t, "job"))) {
		pods[strings.TrimPrefix(name, "ip-reaper-outage-")] = podSpec(job)
	}
	return pods
}

// The policy that an operator has installed holds in an outage, too. It plans, and the
// Jobs release.
func TestOutageJobsKeepTheInstalledPolicy(t *testing.T) {
	c := fresh(t)
	apply(t, c, overlay{
		Resources: []string{"cronjob"},
		Maps:      []configMap{{"ip-reaper-policy", home, "replace", []string{"policy.yaml"}}},
		Files:     map[string]string{"policy.yaml": header + "dryRun: true\nrules: " + jobs.HoldRules + "\n"},
	}.write(t))
	apply(t, c, shipped(t, "job"))
	jobs.HoldsInAnOutage(t, c, home, outageJobs(t))
}

// A Job is not killed while its run looks or waits.
func TestOutageJobsEndBeforeTheirDeadline(t *testing.T) {
	duration := func(text string) time.Duration {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for name, job := range every[*batchv1.CronJob](t, render(t, shipped(t, "job"))) {
		args := podSpec(job).Containers[0].Args
		longest := 2 * duration(argument(args, "--timeout"))
		if wait := argument(args, "--wait"); wait != "" {
			longest += duration(wait)
			if grace := duration(argument(args, "--grace-period")); grace >= duration(wait) {
				t.Errorf("%s waits for %s, and the grace period is %v", name, wait, grace)
			}
		}
		deadline := time.Duration(*job.Spec.JobTemplate.Spec.ActiveDeadlineSeconds) * time.Second
		if deadline <= longest {
			t.Errorf("%s is killed after %v, and may take %v", name, deadline, longest)
		}
	}
}

// An operator who has read a plan that a limit refused can release it by a Job.
func TestOverrideReleasesWhatALimitRefuses(t *testing.T) {
	c := fresh(t)
	apply(t, c, overlay{
		Resources: []string{"cronjob"},
		Maps:      []configMap{{"ip-reaper-policy", home, "replace", []string{"policy.yaml"}}},
		Files:     map[string]string{"policy.yaml": header + "limits: {maxFraction: 0.1, minEntries: 0}\n"},
	}.write(t))
	apply(t, c, shipped(t, "job"))
	jobs.WriteLedger(t, c, home)
	if err := (memory.Memory{Cluster: c, Namespace: home}).Age(t.Context(), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	pods := outageJobs(t)
	for _, step := range []struct {
		template string
		code     int
		releases bool
	}{{"now", reap.ExitLimit, false}, {"override", reap.ExitDone, true}} {
		result, err := jobs.Run(t.Context(), c, home, pods[step.template], t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if result.ExitCode != step.code || result.Report == nil || (result.Report.Summary.Released > 0) != step.releases {
			t.Errorf("%s: exit code %d, want %d; releases: want %t\n%s%s", step.template, result.ExitCode, step.code, step.releases, result.Stdout, result.Stderr)
		}
	}
}
