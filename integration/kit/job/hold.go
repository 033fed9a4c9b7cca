package job

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/memory"
	"github.com/ip-reaper/ip-reaper/integration/kit/plugin"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// HoldRules are the rules of the installed policy that HoldsInAnOutage needs.
const HoldRules = `[{match: {namespaces: [legacy]}, hold: true}]`

// HoldsInAnOutage fails the test unless the templates of an outage go by the policy that
// is installed, with HoldRules: they release a leaked address, and hold one of the rule.
// The pods are those of the templates plan, now, override and wait. The first run that
// saw the addresses without an owner was two minutes ago, so none of the pods waits.
func HoldsInAnOutage(t *testing.T, c *cluster.Cluster, namespace string, pods map[string]corev1.PodSpec) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	leak(t, c, plugin.Pod{Namespace: "legacy", Name: "held"}, plugin.Pod{Namespace: "shop", Name: "leaked"})
	see(t, c, namespace)
	must(memory.Memory{Cluster: c, Namespace: namespace}.Age(t.Context(), 2*time.Minute))

	const held = "held RuleHold kept"
	for _, step := range []struct {
		template string
		want     map[string]string
	}{
		{"plan", map[string]string{"held": held, "leaked": "orphan PodAbsent planned"}},
		{"now", map[string]string{"held": held, "leaked": "orphan PodAbsent released"}},
		{"override", map[string]string{"held": held}},
		{"wait", map[string]string{"held": held}},
	} {
		result, err := Run(t.Context(), c, namespace, pods[step.template], t.TempDir())
		must(err)
		if result.ExitCode != reap.ExitDone || result.Report == nil {
			t.Fatalf("%s: exit code %d\n%s", step.template, result.ExitCode, result.Stderr)
		}
		got := map[string]string{}
		for _, e := range result.Report.Entries {
			got[e.Owner.Pod] = e.Decision + " " + e.Reason + " " + e.Outcome
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.template, diff)
		}
	}
}
