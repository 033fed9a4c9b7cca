package undo_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// released is a world in which a run has released everything, and the ID of the run.
func released(t *testing.T) (*world, string) {
	t.Helper()
	w := newWorld(t, calico.KubernetesT(t))
	w.undisturbed()
	w.proxy.Reset()
	return w, w.journals()[0]
}

// What Calico keeps in etcd is put back as well, beside the other stores (promise 10).
func TestRunOverEtcdIsUndone(t *testing.T) {
	w := newWorld(t, calico.OnEtcdT(t, calico.StartEtcdT(t, calico.EtcdOptions{})))
	w.undisturbed()
	if w.end.same(w.before) {
		t.Fatal("nothing was released")
	}
	w.wantInUse()
	r := w.restore(w.journals()[0])
	if want := (counts{Records: records, Restored: records}); r.Summary != want {
		t.Errorf("%+v, want %+v", r.Summary, want)
	}
	w.wantStores("after the restoration", w.before)
	w.converge()
}

// A second restoration finds everything there, and changes nothing.
func TestRestoringTwiceChangesNothingMore(t *testing.T) {
	w, id := released(t)
	w.restore(id)
	w.wantStores("after the restoration", w.before)
	versions := w.stores().versions()
	r := w.restore(id)
	if want := (counts{Records: records, Present: records}); r.Summary != want || r.Journal.ID != id || len(r.Warnings) > 0 {
		t.Errorf("%+v of %q with warnings %q, want %+v of %q", r.Summary, r.Journal.ID, r.Warnings, want, id)
	}
	if diff := cmp.Diff(versions, w.stores().versions()); diff != "" {
		t.Errorf("versions (-before +after):\n%s", diff)
	}
}

// Promise 5, of a restoration: not even the lock is taken.
func TestDryRunOfARestorationWritesNothing(t *testing.T) {
	w, id := released(t)
	before, err := w.Cluster.Versions(t.Context())
	w.must(err)
	w.proxy.Reset()
	r := w.restores(reap.ExitDone, "--run="+id, "--dry-run")
	if want := (counts{Records: records, Planned: records}); r.Summary != want {
		t.Errorf("%+v, want %+v", r.Summary, want)
	}
	if writes := w.writes(); len(writes) > 0 {
		t.Errorf("it writes: %q", writes)
	}
	after, err := w.Cluster.Versions(t.Context())
	w.must(err)
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
	w, id := released(t)
	ip, _ := w.blockAddresses(id, "gone-2")
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
		was := w.stores().held()
		r := w.restores(reap.ExitDone, append(tt.only, "--run="+id)...)
		w.wantOutcomes(r, tt.want)
		back := 0
		for place, holder := range w.stores().held() {
			if was[place] == holder {
				continue
			}
			back++
			if before := w.before.held()[place]; before != holder {
				t.Errorf("%s is of %s, and was of %s", place, holder, before)
			}
		}
		if back == 0 {
			t.Errorf("%v: nothing is back", tt.only)
		}
	}
	w.restore(id)
	w.wantStores("after the restoration of the rest", w.before)
}

// What is asked for has to be in the journal, and the journal to be there. Nothing is
// written, and it is said what there is.
func TestWhatIsNotThereCannotBeRestored(t *testing.T) {
	w, id := released(t)
	empty := w.file("empty", "")
	for _, tt := range []struct {
		name string
		args []string
		want string
	}{
		{"address", []string{"--run=" + id, "--only=10.1.0.1,10.1.0.77"}, "does not have 10.1.0.77"},
		{"run", []string{"--run=20260101-000000-ABCDEF"}, "runs with a journal there: 1, the latest are " + id},
		{"ID", []string{"--run=a b"}, `"a b" is not the ID of a run`},
		{"file", []string{"--journal=" + w.dir + "/nowhere"}, "no such file"},
		{"run in the file", []string{"--journal=" + empty}, "the file is empty, so its run released nothing"},
		{"journal", nil, "give either --run or --journal"},
		{"one journal", []string{"--run=" + id, "--journal=" + empty}, "give either --run or --journal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.T = t
			result := w.wait(w.start("restore", releaseNow, tt.args...), reap.ExitUsage)
			if !strings.Contains(result.Stderr, tt.want) || result.Stdout != "" {
				t.Errorf("it prints %q and says %s, want %s", result.Stdout, result.Stderr, tt.want)
			}
		})
	}
	w.T = t
	if writes := w.writes(); len(writes) > 0 {
		t.Errorf("writes %q, want none", writes)
	}
}

// People and programs are told the same.
func TestEveryFormOfTheReportTellsTheOutcome(t *testing.T) {
	w, id := released(t)
	look := func(format string) string {
		return w.wait(w.start("restore", releaseNow, "--run="+id, "--dry-run", "-o="+format), reap.ExitDone).Stdout
	}
	text, err := yaml.YAMLToJSON([]byte(look("yaml")))
	w.must(err)
	if got := w.reportOf(reap.Result{Stdout: string(text)}); got.Summary.Planned != records || len(got.Entries) != records {
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

// A file that a run was given has what the cluster has: it restores without the
// cluster's, also when it comes by stdin (promise 10).
func TestFileOfARunRestoresWhatItReleased(t *testing.T) {
	w := newWorld(t, calico.KubernetesT(t))
	file := w.dir + "/journal"
	w.run(releaseNow, "--journal="+file)
	w.end = w.stores()
	w.forget()
	w.restores(reap.ExitDone, "--journal="+file)
	w.wantStores("after the restoration from the file", w.before)
	text, err := os.ReadFile(file)
	w.must(err)

	w.put(w.end)
	w.unlock()
	w.kubeconfig = w.Cluster.Kubeconfig
	p := w.startWith(string(text), "restore", releaseNow, "--journal=-")
	r := w.reportOf(w.wait(p, reap.ExitDone))
	if r.Summary.Restored != records {
		t.Errorf("%+v, want %d put back", r.Summary, records)
	}
	if got := strings.Join(r.Warnings, "\n"); !strings.Contains(got, "the journal is of a run against") {
		t.Errorf("warnings %q, want that the address of the API server is another one", got)
	}
	w.wantStores("after the restoration from stdin", w.before)
}

// A file that was cut short tells nothing, and that is said.
func TestFileThatWasCutShortRestoresNothing(t *testing.T) {
	w := newWorld(t, calico.KubernetesT(t))
	file := w.dir + "/journal"
	w.run(releaseNow, "--journal="+file)
	after := w.stores()
	text, err := os.ReadFile(file)
	w.must(err)
	r := w.restores(reap.ExitPartial, "--journal="+w.file("half", string(text[:len(text)/2])))
	if r.Summary != (counts{}) || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "half, line 1: the journal is damaged") {
		t.Errorf("%+v with warnings %q", r.Summary, r.Warnings)
	}
	w.wantStores("after a restoration from half a file", after)
}

// A file that is there may be all that can undo another run. Nobody is contacted, and
// it stays as it is.
func TestRunDoesNotWriteOverAJournal(t *testing.T) {
	w := newWorld(t, calico.KubernetesT(t))
	file := w.file("journal", "precious")
	for _, path := range []string{file, w.dir + "/no/folder", "-"} {
		w.wait(w.start("run", releaseNow, "--journal="+path), reap.ExitUsage)
	}
	if got := w.proxy.Counts(); len(got) > 0 {
		t.Errorf("requests %v, want none", got)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	w.wantStores("after runs that were refused", w.before)
	w.run(releaseNow, "--journal="+w.dir+"/new", "--dry-run")
	if _, err := os.Stat(w.dir + "/new"); !os.IsNotExist(err) {
		t.Errorf("a dry run has made its file: %v", err)
	}
}
