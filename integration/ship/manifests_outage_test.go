package ship_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
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

// The policy that an operator has installed holds in an outage, too: the Jobs release a leaked
// address although it only plans, and keep one of its rule. An operator who has read a plan that
// one of its limits refused can release it by a Job. The first run that saw the addresses without
// an owner was two minutes ago, so none of the pods waits.
func TestOutageJobsKeepTheInstalledPolicy(t *testing.T) {
	const held, refused, released = "held RuleHold kept", "orphan PodAbsent refused", "orphan PodAbsent released"
	type step struct {
		template string
		code     int
		want     map[string]string
	}
	pods := outageJobs(t)
	for _, tt := range []struct {
		policy string
		steps  []step
	}{
		{"dryRun: true\nrules: [{match: {namespaces: [legacy]}, hold: true}]\n", []step{
			{"plan", reap.ExitDone, map[string]string{"old": held, "leaked": "orphan PodAbsent planned"}},
			{"now", reap.ExitDone, map[string]string{"old": held, "leaked": released}},
			{"override", reap.ExitDone, map[string]string{"old": held}},
			{"wait", reap.ExitDone, map[string]string{"old": held}},
		}},
		{"limits: {maxFraction: 0.1, minEntries: 0}\n", []step{
			{"now", reap.ExitLimit, map[string]string{"old": refused, "leaked": refused}},
			{"override", reap.ExitDone, map[string]string{"old": released, "leaked": released}},
		}},
	} {
		c := fresh(t)
		apply(t, c, overlay{Resources: []string{"cronjob"}, Policy: header + tt.policy}.write(t))
		apply(t, c, shipped(t, "job"))
		writeLedger(t, c, plugin.Pod{Namespace: "legacy", Name: "old"}, leaked)
		must(t, reap.Memory{Cluster: c, Namespace: home}.Age(t.Context(), 2*time.Minute))
		for _, step := range tt.steps {
			result := runPod(t, c, pods[step.template])
			if result.ExitCode != step.code || result.Report == nil {
				t.Fatalf("%s: exit code %d, want %d\n%s", step.template, result.ExitCode, step.code, result.Stderr)
			}
			got := map[string]string{}
			for _, e := range result.Report.Entries {
				got[e.Owner.Pod] = e.Decision + " " + e.Reason + " " + e.Outcome
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", tt.policy, step.template, diff)
			}
		}
	}
}

// A Job is not killed while its run looks or waits, but before the next one is due, which does not wait
// for a pod that stays on a dead node. It fails at once where another try would fail too, and tries again
// when the lock is taken. Templates for outages run only when an operator makes a Job of them.
func TestJobsEndAndTryAgain(t *testing.T) {
	duration := func(text string) time.Duration {
		d, err := time.ParseDuration(text)
		must(t, err)
		return d
	}
	for name, c := range everyPod(t, render(t, of("outage").write(t))) {
		outage, spec := name != "ip-reaper", c.Spec.JobTemplate.Spec
		suspended := c.Spec.Suspend != nil && *c.Spec.Suspend
		if suspended != outage || c.Spec.ConcurrencyPolicy != batchv1.ReplaceConcurrent {
			t.Errorf("%s: suspended %t, concurrency %s", name, suspended, c.Spec.ConcurrencyPolicy)
		}
		args := podSpec(c).Containers[0].Args
		longest := duration(argument(args, "--timeout"))
		if wait := argument(args, "--wait"); wait != "" {
			longest += duration(argument(args, "--timeout")) + duration(wait)
			if grace := duration(argument(args, "--grace-period")); grace >= duration(wait) {
				t.Errorf("%s waits for %s, and the grace period is %v", name, wait, grace)
			}
		}
		deadline := time.Duration(*spec.ActiveDeadlineSeconds) * time.Second
		if deadline <= longest {
			t.Errorf("%s is killed after %v, and may take %v", name, deadline, longest)
		}
		if !outage {
			schedule, err := cron.ParseStandard(c.Spec.Schedule)
			must(t, err)
			first := schedule.Next(time.Now())
			if interval := schedule.Next(first).Sub(first); deadline >= interval {
				t.Errorf("%s is killed after %v, and the next is due after %v", name, deadline, interval)
			}
		}
		want := []int32{2, 4}
		last := spec.PodFailurePolicy.Rules[len(spec.PodFailurePolicy.Rules)-1]
		if last.Action != batchv1.PodFailurePolicyActionFailJob || !slices.Equal(last.OnExitCodes.Values, want) {
			t.Errorf("%s: %s on exit codes %v, want FailJob on %v", name, last.Action, last.OnExitCodes.Values, want)
		}
	}
}
