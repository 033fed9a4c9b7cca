package run_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

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

// What Calico keeps in etcd is put back as well, beside the other stores (promise 10).
func TestRunOverEtcdIsUndone(t *testing.T) {
	w := world.New(t, calico.OnEtcdT(t, calico.StartEtcdT(t, calico.EtcdOptions{})))
	w.Undisturbed()
	if maps.Equal(w.End.Bytes(), w.Before.Bytes()) {
		t.Fatal("nothing was released")
	}
	w.WantInUse()
	r := w.Restore(w.Journals()[0])
	if want := (world.RestoreSummary{Records: world.Records, Restored: world.Records}); r.Summary != want {
		t.Errorf("%+v, want %+v", r.Summary, want)
	}
	w.WantStores("after the restoration", w.Before)
	w.Converge()
}

// A second restoration finds everything there, and changes nothing.
func TestRestoringTwiceChangesNothingMore(t *testing.T) {
	w, id := afterRelease(t)
	w.Restore(id)
	w.WantStores("after the restoration", w.Before)
	versions := w.Stores().Versions()
	dry := w.Restores(reap.ExitDone, "--run="+id, "--dry-run")
	if want := (world.RestoreSummary{Records: world.Records, Present: world.Records}); dry.Summary != want {
		t.Errorf("a dry run says %+v, want %+v", dry.Summary, want)
	}
	r := w.Restore(id)
	if want := (world.RestoreSummary{Records: world.Records, Present: world.Records}); r.Summary != want || r.Journal.ID != id || len(r.Warnings) > 0 {
		t.Errorf("%+v of %q with warnings %q, want %+v of %q", r.Summary, r.Journal.ID, r.Warnings, want, id)
	}
	if diff := cmp.Diff(versions, w.Stores().Versions()); diff != "" {
		t.Errorf("versions (-before +after):\n%s", diff)
	}
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

// The addresses that are asked for are put back, each with what it needs, and nothing
// else. The rest can be asked for later.
func TestOnlyWhatIsAskedForIsRestored(t *testing.T) {
	w, id := afterRelease(t)
	ip, _ := blockAddresses(w, id, "gone-2")
	four := ip.String()
	for _, tt := range []struct {
		only []string
		want map[string]string
	}{
		{[]string{"--only=10.1.0.1"}, map[string]string{"whereabouts 10.1.0.1": "restored", "overlapping 10.1.0.1": "restored"}},
		{
			[]string{"--only=10.2.0.2,::ffff:10.1.0.1", "--only", four},
			map[string]string{
				"whereabouts 10.1.0.1": "present", "overlapping 10.1.0.1": "present",
				"whereabouts 10.2.0.2": "restored", "calico " + four: "restored",
			},
		},
	} {
		was := w.Stores().Held()
		r := w.Restores(reap.ExitDone, append(tt.only, "--run="+id)...)
		w.WantOutcomes(r, tt.want)
		back := 0
		for place, holder := range w.Stores().Held() {
			if was[place] == holder {
				continue
			}
			back++
			if before := w.Before.Held()[place]; before != holder {
				t.Errorf("%s is of %s, and was of %s", place, holder, before)
			}
		}
		if back == 0 {
			t.Errorf("%v: nothing is back", tt.only)
		}
	}
	w.Restore(id)
	w.WantStores("after the restoration of the rest", w.Before)
}

// What is asked for has to be in the journal, and the journal to be there. Nothing is
// written, and it is said what there is.
func TestWhatIsNotThereCannotBeRestored(t *testing.T) {
	w, id := afterRelease(t)
	empty := file(w, "empty", "")
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"address", []string{"--run=" + id, "--only=10.1.0.1,10.1.0.77"}, "does not have 10.1.0.77"},
		{"run", []string{"--run=20260101-000000-ABCDEF"}, "runs with a journal there: 1, the latest are " + id},
		{"ID", []string{"--run=a b"}, `"a b" is not the ID of a run`},
		{"file", []string{"--journal=" + w.Dir + "/nowhere"}, "no such file"},
		{"run in the file", []string{"--journal=" + empty}, "the file is empty, so its run released nothing"},
		{"journal", nil, "give either --run or --journal"},
		{"one journal", []string{"--run=" + id, "--journal=" + empty}, "give either --run or --journal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			result := w.Ends(reap.ExitUsage, w.Starts("restore", world.ReleaseNow, tt.args...))
			if !strings.Contains(result.Stderr, tt.want) || result.Stdout != "" {
				t.Errorf("it prints %q and says %s, want %s", result.Stdout, result.Stderr, tt.want)
			}
		})
	}
	if writes := fault.Writes(w.Proxy); len(writes) > 0 {
		t.Errorf("writes %q, want none", writes)
	}
}

// People and programs are told the same.
func TestFormsOfTheRestoreReportTellTheOutcome(t *testing.T) {
	w, id := afterRelease(t)
	look := func(format string) string {
		return w.Ends(reap.ExitDone, w.Starts("restore", world.ReleaseNow, "--run="+id, "--dry-run", "-o="+format)).Stdout
	}
	text, err := yaml.YAMLToJSON([]byte(look("yaml")))
	w.Must(err)
	if got := w.RestoreReportOf(reap.Result{Stdout: string(text)}); got.Summary.Planned != world.Records || len(got.Entries) != world.Records {
		t.Errorf("YAML: %+v", got)
	}
	for _, format := range []string{"table", "wide", "markdown"} {
		got := look(format)
		for _, want := range []string{"10.1.0.3", "overlapping", "shop/gone-2", "planned", "10 of 10 entries of run " + id + " would be put back"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s does not have %q:\n%s", format, want, got)
			}
		}
	}
}

// A run that waits looks, and writes its journal, more than once. Its second look
// releases all that is due by then, and it is undone as a whole, to the byte.
func TestRunThatLookedTwiceIsUndone(t *testing.T) {
	// It was seen an hour ago, and a long grace period may end 15 s early.
	const later = "rules:\n- {match: {pods: [gone-2]}, gracePeriod: 3618s}\n"
	w := world.New(t, calico.KubernetesT(t))
	result := w.Run(world.ReleaseNow+later, "--wait")
	if n := result.Report.Summary.Released; n != world.Records {
		t.Errorf("%d were released, want %d", n, world.Records)
	}
	parts, err := w.Memory.JournalParts(t.Context())
	w.Must(err)
	if len(parts) != 2 {
		t.Fatalf("%d parts of journals, want one for each look", len(parts))
	}
	w.Restore(w.Journals()[0])
	w.WantStores("after the restoration", w.Before)
}
