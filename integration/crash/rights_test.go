package crash_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/rights"
	"github.com/ip-reaper/ip-reaper/integration/kit/snapshot"
	"github.com/ip-reaper/ip-reaper/integration/kit/world"
)

// defineMigrations defines the resource by which Calico 3.32 moves its data, until
// the test ends.
func defineMigrations(w *world.World) {
	w.Helper()
	file := filepath.Join(w.TempDir(), "datastoremigrations.yaml")
	w.Must(os.WriteFile(file, []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: datastoremigrations.migration.projectcalico.org}
spec:
  group: migration.projectcalico.org
  names: {kind: DatastoreMigration, listKind: DatastoreMigrationList, plural: datastoremigrations, singular: datastoremigration}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`), 0o600))
	w.Cluster.DefineT(w.T, file)
}

// A backend whose role is missing says that it failed, and that this was forbidden,
// and counts nothing; the others go on (promises 9 and 11).
func TestBackendWithoutItsRoleFailsAndTheOthersGoOn(t *testing.T) {
	w, _ := fixture(t)
	const lone = "10.3.0.1" // a reservation beside which no pool has an entry
	rows := []string{"10.1.0.0-24 10.1.0.1", "10.1.0.0-24 10.1.0.3", "10.2.0.0-24 10.2.0.2"}
	for _, tt := range []struct {
		name   string
		roles  []string
		status map[string]string
		gone   []string // of Whereabouts
	}{
		// With the role of overlapping it may list pools too.
		{
			"no whereabouts", []string{"overlapping", "calico"},
			map[string]string{"whereabouts": "partial", "overlapping": "ok", "calico": "ok"}, []string{lone},
		},
		{
			"no overlapping", []string{"whereabouts", "calico"},
			map[string]string{"whereabouts": "ok", "overlapping": "failed", "calico": "ok"}, rows,
		},
		{
			"no calico", []string{"whereabouts", "overlapping"},
			map[string]string{"whereabouts": "ok", "overlapping": "ok", "calico": "failed"}, append(rows, "10.1.0.1", "10.1.0.3", lone),
		},
	} {
		w.Sub(tt.name, func() {
			w.As(nil)
			w.Again()
			reserve(w, lone, "gone-3")
			want := w.Stores().Owners()
			for _, place := range tt.gone {
				delete(want, place)
			}
			install(w, shipped(w, rights.Release, tt.roles...))
			w.Must(w.Memory.Unlock(w.Context()))
			r := w.Ends(reap.ExitPartial, w.Starts("run", plain+"gracePeriod: 0s\n", "--all")).Report
			wantStatus(w, r, tt.status)
			snapshot.WantT(w, "of Whereabouts", want, w.Stores().Owners())
			end := w.End
			if tt.status["calico"] == "failed" {
				end = w.Before
			}
			snapshot.WantT(w, "of Calico", blocks(end), blocks(w.Stores()))
			wantTrue(w, r)
			w.WantInUse()
		})
	}
	w.Sub("no calico, to plan", func() {
		w.As(nil)
		w.Again()
		install(w, shipped(w, rights.Plan, "whereabouts", "overlapping"))
		r := releasesNothing(w, plain+"gracePeriod: 0s\n")
		// The others have something to release, and may not.
		wantStatus(w, r, map[string]string{"whereabouts": "partial", "overlapping": "partial", "calico": "failed"})
	})
}

// wantStatus compares what the report says of the backends. Those that failed were
// forbidden to look, and counted nothing.
func wantStatus(w *world.World, r *reap.Report, want map[string]string) {
	w.Helper()
	got := map[string]string{}
	for _, b := range r.Backends {
		got[b.Name] = b.Status
		if b.Status == "failed" && (!strings.Contains(b.Message, "forbidden") || b.Summary != (reap.Summary{})) {
			w.Errorf("%s failed: %q, with %+v; want that it is forbidden, and nothing counted", b.Name, b.Message, b.Summary)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("backends (-want +got):\n%s", diff)
	}
	for _, e := range r.Entries {
		// Where the ledger may not be written, each release fails for that.
		if e.Outcome == "failed" && !strings.Contains(e.Error, "forbidden") {
			w.Errorf("%s %s failed: %s", e.Backend, e.IP, e.Error)
		}
	}
}

// A run that may not write its journal releases nothing, though it could (promise 10).
func TestWithoutAJournalNothingIsReleased(t *testing.T) {
	w, _ := fixture(t)
	w.Again()
	install(w, shipped(w, rights.Release, stores...).Without("create configmaps"))
	w.Must(w.Memory.Unlock(t.Context()))
	r := w.Ends(reap.ExitPartial, w.Starts("run", plain+"gracePeriod: 0s\n")).Report
	if s := r.Summary; s.Released != 0 || s.Failed == 0 || len(r.Warnings) == 0 {
		t.Errorf("%+v with warnings %q", s, r.Warnings)
	}
	for _, e := range r.Entries {
		if e.Outcome == "failed" && !strings.Contains(e.Error, " may not create configmaps in namespace") {
			t.Errorf("%s failed: %s", e.Key, e.Error)
		}
	}
	w.WantStores("without a journal", w.Before)
	if got := w.Journals(); len(got) > 0 {
		t.Errorf("there are journals of %q", got)
	}
}
