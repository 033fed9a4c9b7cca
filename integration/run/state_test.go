package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Promise 10. Without a state namespace there is no journal. So a run that releases ends before it
// lists anything, even if only its first write reveals this. A namespace that is being deleted takes
// no journal either. Scripts in reaper/cli prove what the commands say.
func TestMissingStateNamespaceIsAnErrorBeforeAnyRelease(t *testing.T) {
	f := newFixture(t)
	f.leak("web-0")
	const leaving = "leaving"
	f.must(f.CreateNamespace(t.Context(), leaving))
	f.must(f.Kube.CoreV1().Namespaces().Delete(t.Context(), leaving, metav1.DeleteOptions{}))
	before := f.owners()
	for _, readable := range []bool{true, false} {
		if !readable {
			f.toReaper.Before(proxy.On("get namespaces"), proxy.Always(proxy.Forbidden()))
		}
		for namespace, says := range map[string]string{"nowhere": "does not exist", leaving: "is being deleted"} {
			result, err := f.start(atOnce, "--state-namespace="+namespace).Wait()
			f.must(err)
			if result.ExitCode != reap.ExitUsage {
				t.Errorf("exit code %d, want %d", result.ExitCode, reap.ExitUsage)
			}
			f.wantText(result.Stderr, fmt.Sprintf("the state namespace %q %s", namespace, says))
			f.wantText(result.Stderr, "hint: name the one of ip-reaper with --state-namespace, or install it: see docs/install.md")
		}
		if writes := proxy.Writes(f.toReaper); readable && len(writes) > 0 {
			t.Errorf("it writes: %q", writes)
		}
	}
	if diff := cmp.Diff(before, f.owners()); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

// A ledger in another namespace may be the installation's.
func TestRunTellsOfAStateElsewhere(t *testing.T) {
	f := newFixture(t)
	f.leak("web-0")
	f.reap(reap.ExitDone, atOnce)
	const elsewhere = "--state-namespace=" + shop
	report := f.reap(reap.ExitDone, atOnce, "--dry-run", elsewhere).Report
	f.wantText(strings.Join(report.Run.Caveats, "\n"), "ip-reaper has a ledger or a lock in namespace "+home+
		", and this command uses "+shop+": check --state-namespace first")
	if report := f.reap(reap.ExitDone, atOnce, "--dry-run").Report; len(report.Run.Caveats) > 0 {
		t.Errorf("at home it warns: %q", report.Run.Caveats)
	}
	for _, list := range []string{"list configmaps", "list leases"} {
		f.toReaper.Before(proxy.On(list), proxy.Always(proxy.Forbidden()))
	}
	if report := f.reap(reap.ExitDone, atOnce, "--dry-run", elsewhere).Report; len(report.Run.Caveats) > 0 {
		t.Errorf("without the right to look it warns: %q", report.Run.Caveats)
	}
}
