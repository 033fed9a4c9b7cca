package run_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/fault"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/world"
)

// afterRelease is a world in which a run has released everything, and the ID of the run.
func afterRelease(t *testing.T) (*world.World, string) {
	t.Helper()
	w := world.New(t, calico.KubernetesT(t))
	w.Undisturbed()
	return w, w.Journals()[0]
}

// file writes a file of the world and returns its path.
func file(w *world.World, name, text string) string {
	w.Helper()
	path := filepath.Join(w.Dir, name)
	w.Must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Promise 5, of a restoration: not even the lock is taken.
func TestDryRunOfARestorationWritesNothing(t *testing.T) {
	w, id := afterRelease(t)
	before, err := w.Cluster.Versions(t.Context())
	w.Must(err)
	w.Proxy.Reset()
	r := w.Restores(reap.ExitDone, "--run="+id, "--dry-run")
	if want := (world.RestoreSummary{Records: world.Records, Planned: world.Records}); r.Summary != want {
		t.Errorf("%+v, want %+v", r.Summary, want)
	}
	if writes := fault.Writes(w.Proxy); len(writes) > 0 {
		t.Errorf("it writes: %q", writes)
	}
	after, err := w.Cluster.Versions(t.Context())
	w.Must(err)
	for _, versions := range []map[string]string{before, after} { // which the test itself deletes
		delete(versions, "leases.coordination.k8s.io/"+home+"/ip-reaper")
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("versions (-before +after):\n%s", diff)
	}
}
