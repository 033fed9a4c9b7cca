package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/reaper/kube/state"
)

// A dry run by a file reads the installed policy, judges by both, and writes nothing. Without the right,
// or without an installed policy, it says that there is nothing to compare with.
func TestDryRunByAFileComparesItWithTheInstalledPolicy(t *testing.T) {
	f := newFixture(t)
	f.leak("web-0")
	f.leak("web-1")
	says := func(policy string) string {
		t.Helper()
		c := f.reap(reap.ExitDone, policy, "--dry-run").Report.Comparison
		if c.Missing != "" {
			return c.Missing
		}
		text := fmt.Sprintf("%d due, %d held", c.Due, c.Held)
		for _, change := range c.Changes {
			text += fmt.Sprintf("; %s: %s, by the file %s", change.Owner.Pod, change.Installed.Reason, change.File.Reason)
		}
		return text
	}
	want := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	const hold = "rules: [{match: {pods: [web-0], pools: [10.0.0.0/8]}, hold: true}]\n"
	want("no policy", says(atOnce), "namespace "+home+" has no ConfigMap ip-reaper-policy")
	f.must(reap.Memory{Cluster: f.Cluster, Namespace: home}.InstallPolicy(t.Context(), atOnce))
	want("the same", says(atOnce), "0 due, 0 held")
	want("a rule more", says(atOnce+hold), "-1 due, 1 held; web-0: PodAbsent, by the file RuleHold")
	want("a longer grace period", says(patient), "-2 due, 0 held; web-0: PodAbsent, by the file PodAbsent; web-1: PodAbsent, by the file PodAbsent")
	f.toReaper.Before(func(r proxy.Request) bool { return r.Name == state.PolicyName }, proxy.Always(proxy.Forbidden()))
	if got := says(atOnce); !strings.Contains(got, "orbidden") {
		t.Errorf("without the right: %s", got)
	}
}
