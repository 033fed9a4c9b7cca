package run_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// explain says of a pod and of an address on a real API server what a run decides, and
// writes nothing (promise 5).
func TestExplainOnTheRealAPIServer(t *testing.T) {
	f := newFixture(t)
	ip := f.leak("web-0")
	f.wantSaid(f.reap(reap.ExitDone, patient).Report, decisions{"web-0": suspected})
	before := f.versions()
	reaper, err := reap.New()
	f.must(err)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	f.must(os.WriteFile(file, []byte(patient), 0o600))
	for _, subject := range []string{ip, shop + "/web-0"} {
		result, err := reaper.Run(f.Context(), "explain", "--kubeconfig", f.kubeconfig, "--context", cluster.ContextName,
			"--state-namespace", home, "--policy", file, subject)
		f.must(err)
		if result.ExitCode != reap.ExitDone {
			t.Fatalf("exit code %d: %s", result.ExitCode, result.Stderr)
		}
		f.wantText(result.Stdout, "rule 33     yes  PodAbsent: The pod does not exist.")
		f.wantText(result.Stdout, "first seen  2") // the ledger of the earlier run has it
		f.wantText(result.Stdout, "--context "+cluster.ContextName+" --state-namespace "+home+" --policy "+file+" --pod shop/web-0 --grace-period=0s")
	}
	if diff := cmp.Diff(before, f.versions()); diff != "" {
		t.Errorf("explain wrote (-before +after):\n%s", diff)
	}
}
