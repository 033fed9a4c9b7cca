package run_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit/fault"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// Promise 10. Without a state namespace there is no journal. So a command that writes ends before
// it lists anything, even if only its first write reveals this.
func TestMissingStateNamespaceIsAnErrorBeforeAnyRelease(t *testing.T) {
	const nowhere = "--state-namespace=nowhere"
	for _, readable := range []bool{true, false} {
		t.Run(map[bool]string{true: "known", false: "namespaces may not be read"}[readable], func(t *testing.T) {
			f := newFixture(t)
			f.leak("web-0")
			before := f.owners()
			if !readable {
				f.toReaper.Before(proxy.On("get namespaces"), proxy.Always(proxy.Forbidden()))
			}
			result, err := f.start(atOnce, "--state-namespace=nowhere").Wait()
			f.must(err)
			if result.ExitCode != reap.ExitUsage {
				t.Errorf("exit code %d, want %d", result.ExitCode, reap.ExitUsage)
			}
			f.wantText(result.Stderr, `the state namespace "nowhere" does not exist`)
			f.wantText(result.Stderr, "hint: name the one of ip-reaper with --state-namespace, or create it")
			if after := f.owners(); len(after) != len(before) {
				t.Errorf("owners %v, want %v", after, before)
			}
			if writes := fault.Writes(f.toReaper); readable && len(writes) > 0 {
				t.Errorf("it writes: %q", writes)
			}
		})
	}
}

// A misspelt name must not look like a healthy cluster, even if nothing would be written.
func TestStateNamespaceThatIsNamedMustExist(t *testing.T) {
	f := newFixture(t)
	f.leak("web-0")
	f.reap(reap.ExitDone, patient)
	for _, command := range []string{"run", "pools", "history", "restore"} {
		args := []string{command, "--kubeconfig", f.kubeconfig, "--state-namespace", home + "s"}
		if command == "restore" {
			args = append(args, "--run", "any", "--dry-run")
		}
		r, err := reap.New()
		f.must(err)
		result, err := r.Run(t.Context(), args...)
		f.must(err)
		if result.ExitCode != reap.ExitUsage || result.Stdout != "" {
			t.Errorf("%s: exit code %d, want %d and no report:\n%s", command, result.ExitCode, reap.ExitUsage, result.Stdout)
		}
		f.wantText(result.Stderr, "hint: ip-reaper has a ledger or a lock in namespace "+home+": name it with --state-namespace")
	}
}

// A ledger in another namespace may be the installation's.
func TestRunTellsOfAStateElsewhere(t *testing.T) {
	f := newFixture(t)
	f.leak("web-0")
	f.reap(reap.ExitDone, atOnce)
	const elsewhere = "--state-namespace=" + shop
	report := f.reap(reap.ExitDone, atOnce, "--dry-run", elsewhere).Report
	f.wantText(strings.Join(report.Run.Caveats, "\n"), "ip-reaper also has a ledger or a lock in namespace "+home+
		", and this command uses "+shop+": name the right one with --state-namespace")
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

// A namespace that is being deleted takes no journal.
func TestStateNamespaceThatIsBeingDeletedIsAnError(t *testing.T) {
	f := newFixture(t)
	f.leak("web-0")
	const leaving = "leaving"
	_, err := f.Kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: leaving}}, metav1.CreateOptions{})
	f.must(err)
	f.must(f.Kube.CoreV1().Namespaces().Delete(t.Context(), leaving, metav1.DeleteOptions{}))
	result, err := f.start(atOnce, "--state-namespace="+leaving).Wait()
	f.must(err)
	if result.ExitCode != reap.ExitUsage {
		t.Errorf("exit code %d, want %d", result.ExitCode, reap.ExitUsage)
	}
	f.wantText(result.Stderr, `the state namespace "leaving" is being deleted`)
}
