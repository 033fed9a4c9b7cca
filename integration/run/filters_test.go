package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A filter narrows what a run releases, reports and counts for its limits, and nothing
// else: an address is released from all stores or from none, and the others wait as they
// did (promises 1 and 7).
func TestOnlyWhatAFilterSelectsIsReleased(t *testing.T) {
	f := newFixture(t)
	f.network = wide // an entry and a reservation for each address
	for _, pod := range []string{"web-0", "web-1", "web-2"} {
		f.leak(pod)
	}
	before := f.owners()
	limited := atOnce + "limits: {maxReleases: 2, maxFraction: 1}\n"
	f.wantSaid(f.reap(reap.ExitLimit, limited, "-n", shop).Report, decisions{"web-0": refused, "web-1": refused, "web-2": refused})
	f.wantSaid(f.reap(reap.ExitDone, limited, "-n", shop, "--pod", "web-1").Report, decisions{"web-1": released})
	left := f.owners()
	for place, owner := range before {
		if mine := strings.HasPrefix(owner, shop+"/web-1 ") || owner == shop+"/web-1"; mine == (left[place] == owner) {
			t.Errorf("%s of %s: it is selected: %v; now it is of %q", place, owner, mine, left[place])
		}
	}
	versions := f.versions()
	result := f.reap(reap.ExitUsage, atOnce, "--pool", "10.0.0.0-25")
	f.wantText(result.Stderr, "the selection names what does not exist: pool 10.0.0.0-25")
	if now := f.versions(); len(now) != len(versions) {
		t.Errorf("a mistake in a filter released something: %d objects, %d before", len(now), len(versions))
	}
	f.wantSaid(f.reap(reap.ExitDone, atOnce, "--pool", "10.0.0.0-24").Report, decisions{"web-0": released, "web-2": released})
	if left := f.owners(); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

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
