package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A journal that history has printed is as good as the cluster's: it restores without that one, even
// from stdin (promise 10).
func TestPrintedJournalRestoresWhatTheRunReleased(t *testing.T) {
	w := kit.NewWorld(t)
	w.Run(kit.ReleaseNow)
	w.End = w.Stores()
	journal := w.Journal()
	path := filepath.Join(w.Dir, "run.json")
	w.Must(os.WriteFile(path, []byte(journal), 0o600))
	w.Must(w.Memory.Forget(w.Context()))
	w.Restores(reap.ExitDone, "--journal="+path)
	w.WantStores("after the restoration from the file", w.Before)

	w.Put(w.End)
	w.Must(w.Memory.Unlock(w.Context()))
	elsewhere, err := proxy.Start(w.Cluster.Config)
	w.Must(err)
	t.Cleanup(elsewhere.Stop)
	w.Proxy = elsewhere
	w.As(nil)
	p := w.StartsWith(journal, "restore", kit.ReleaseNow, "--journal=-")
	r := w.RestoreReportOf(w.Ends(reap.ExitDone, p))
	if r.Summary.Restored != kit.Records {
		t.Errorf("%+v, want %d put back", r.Summary, kit.Records)
	}
	if len(r.Warnings) > 0 {
		t.Errorf("warnings %q, although it is the same cluster at another address", r.Warnings)
	}
	w.WantStores("after the restoration from stdin", w.Before)
}

// A journal of another cluster puts nothing back, unless a flag says so (promise 1). Without a flag,
// a restore is a dry run (promise 5).
func TestJournalOfAnotherClusterIsRefused(t *testing.T) {
	w := kit.NewWorld(t)
	w.Run(kit.ReleaseNow)
	w.End = w.Stores()
	printed := w.Journal()
	system, err := w.Cluster.Kube.CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	w.Must(err)
	const there = "6f0c1a52-0000-4000-8000-000000000000"
	here := string(system.UID)
	journal := strings.ReplaceAll(printed, here, there)
	if journal == printed {
		t.Fatalf("the journal does not have the UID %s of its cluster: %.400s", here, printed)
	}
	w.Must(w.Memory.Unlock(t.Context()))
	w.Proxy.Reset()
	for _, dry := range []string{"--dry-run=false", "--dry-run"} {
		result := w.Ends(reap.ExitUsage, w.StartsWith(journal, "restore", kit.ReleaseNow, "--journal=-", dry))
		for _, want := range []string{"another cluster", here, there, "--accept-other-cluster"} {
			if !strings.Contains(result.Stderr, want) {
				t.Errorf("%s: it says %q, want %q", dry, result.Stderr, want)
			}
		}
	}
	const accept = "--accept-other-cluster"
	r := w.RestoreReportOf(w.Ends(reap.ExitDone, w.StartsWith(journal, "restore", kit.ReleaseNow, "--journal=-", accept, "--dry-run")))
	if writes := proxy.Writes(w.Proxy); len(writes) > 0 || r.Summary.Planned != kit.Records {
		t.Errorf("%+v of a dry run, which writes %q", r.Summary, writes)
	}
	w.WantStores("after refusals and a dry run", w.End)
	r = w.RestoreReportOf(w.Ends(reap.ExitDone, w.StartsWith(journal, "restore", kit.ReleaseNow, "--journal=-", accept)))
	if got := strings.Join(r.Warnings, "\n"); r.Summary.Restored != kit.Records || !strings.Contains(got, there) {
		t.Errorf("%+v with warnings %q", r.Summary, got)
	}
	w.WantStores("after the restoration", w.Before)
}

// The account of a run that may not read the namespace kube-system writes a journal, without the UID
// of its cluster, and a restore warns as it can.
func TestJournalWithoutItsClusterWarnsByTheAddress(t *testing.T) {
	w := kit.NewWorld(t)
	w.Proxy.Before(proxy.On("get namespaces"), proxy.Always(proxy.Forbidden()))
	w.Run(kit.ReleaseNow)
	elsewhere, err := proxy.Start(w.Cluster.Config)
	w.Must(err)
	t.Cleanup(elsewhere.Stop)
	w.Proxy = elsewhere
	w.As(nil)
	r := w.Restores(reap.ExitDone, "--run=latest")
	if got := strings.Join(r.Warnings, "\n"); !strings.Contains(got, "the journal is from a run against") {
		t.Errorf("warnings %q, want that the address of the API server is another one", got)
	}
	w.WantStores("after the restoration", w.Before)
}
