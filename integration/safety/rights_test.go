package safety_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
	"github.com/ip-reaper/ip-reaper/integration/kit/rights"
)

// A service account with exactly the roles that are shipped for one backend
// releases; with any one verb less it does not, so that none of them is too many.
func TestShippedRolesSufficeForARunAndNoVerbIsTooMany(t *testing.T) {
	for _, e := range errands {
		t.Run(e.backend, func(t *testing.T) {
			s := newScene(t)
			s.pod(t, "live")
			g := shipped(t, rights.Release, e.backend)
			a := s.install(t, g)
			if wrong := e.run(t, a); wrong != "" {
				t.Fatalf("with the roles as shipped: %s", wrong)
			}
			g = g.Split()
			for _, v := range g.Verbs() {
				if e.backend == allocationBackend && v.Of(g) == "create events" {
					continue // for the event on the Job, of which there is none here
				}
				t.Run("without "+v.Of(g), func(t *testing.T) {
					a.lose(t, g, v)
					if wrong := e.run(t, a); wrong == "" {
						t.Error("the run succeeds all the same: the verb is superfluous")
					}
				})
			}
		})
	}
}

// The read-only roles suffice for a dry run, none of their verbs is too many,
// and a run that is told to release releases nothing with them (promise 5).
func TestShippedPlanRolesSufficeForADryRunAndForNothingElse(t *testing.T) {
	for _, e := range errands {
		t.Run(e.backend, func(t *testing.T) {
			s := newScene(t)
			s.pod(t, "live")
			g := shipped(t, rights.Plan, e.backend)
			a := s.install(t, g)
			e.begin(t, a)
			policy := releaseNow + slowRule + only(e.backend)
			before := s.versions(t)
			result := a.run(t, reap.ExitDone, policy, "--dry-run")
			if got := result.Report.Summary.Planned; got != 2 {
				t.Errorf("%d releases are planned, want 2", got)
			}

			result = a.run(t, reap.ExitPartial, policy)
			checkNamesFailure(t, result)
			a.checkTrue(t, result.Report)
			if got := result.Report.Summary.Released; got != 0 {
				t.Errorf("the report says that %d were released", got)
			}
			if diff := cmp.Diff(before, s.versions(t)); diff != "" {
				t.Errorf("versions (-before +after):\n%s", diff)
			}

			g = g.Split()
			for _, v := range g.Verbs() {
				t.Run("without "+v.Of(g), func(t *testing.T) {
					a.lose(t, g, v)
					result, err := a.start(t, policy, "--dry-run").Wait()
					if err != nil {
						t.Fatal(err)
					}
					if result.ExitCode == reap.ExitDone {
						t.Error("the dry run succeeds all the same: the verb is superfluous")
					}
				})
			}
		})
	}
}

// A backend whose role is missing says that it failed, and by what, and counts
// nothing as looked at; the others go on (promises 9 and 11).
func TestBackendWithoutItsRoleFailsAndTheOthersGoOn(t *testing.T) {
	for name, tt := range map[string]struct {
		roles  []string
		status map[string]string
		gone   []string
	}{
		"no Whereabouts": {
			[]string{blockBackend},
			map[string]string{poolBackend: "failed", allocationBackend: "failed", blockBackend: "skipped"}, nil,
		},
		// With the role of overlapping it may list pools too.
		"no whereabouts": {
			[]string{allocationBackend, blockBackend},
			map[string]string{poolBackend: "partial", allocationBackend: "ok", blockBackend: "skipped"}, []string{"10.3.0.1"},
		},
		"no overlapping": {
			[]string{poolBackend, blockBackend},
			map[string]string{poolBackend: "ok", allocationBackend: "failed", blockBackend: "skipped"}, []string{"10.1.0.0-24 10.1.0.1"},
		},
		"no calico": {
			[]string{poolBackend, allocationBackend},
			map[string]string{poolBackend: "ok", allocationBackend: "ok", blockBackend: "failed"},
			[]string{"10.1.0.0-24 10.1.0.1", "10.1.0.1", "10.3.0.1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.pod(t, "live")
			s.put(t, network.Range, map[int]string{1: "gone-1", 2: "live"})
			s.reserve(t, "10.3.0.1", s.ref("gone-3"))
			want := s.store(t)
			for _, key := range tt.gone {
				delete(want, key)
			}
			a := s.install(t, shipped(t, rights.Release, tt.roles...))
			report := a.run(t, reap.ExitPartial, releaseNow).Report
			status := map[string]string{}
			for _, b := range report.Backends {
				status[b.Name] = b.Status
				if b.Status == "failed" && (!strings.Contains(b.Message, "forbidden") || b.Summary != (reap.Summary{})) {
					t.Errorf("%s failed: %q, with %+v; want that it is forbidden, and nothing counted", b.Name, b.Message, b.Summary)
				}
			}
			if diff := cmp.Diff(tt.status, status); diff != "" {
				t.Errorf("backends (-want +got):\n%s", diff)
			}
			for _, e := range report.Entries {
				if e.Outcome == "failed" && !strings.Contains(e.Error, "forbidden") {
					t.Errorf("%s %s failed: %s", e.Backend, e.IP, e.Error)
				}
			}
			s.checkStore(t, want)
			a.checkTrue(t, report)
		})
	}
}

// A ledger of more than one ConfigMap is within the shipped rights too, which
// name every one that there can be.
func TestShippedRolesSufficeForALargeLedger(t *testing.T) {
	const entries = 10_001 // one more than a ConfigMap of the ledger has
	s := newScene(t)
	s.pod(t, "live")
	a := s.install(t, shipped(t, rights.Release, poolBackend))
	s.putEntries(t, "10.8.0.0/16", entries)
	policy := policyHead + "dryRun: false\n" + only(poolBackend)
	for range 2 { // the second has both to read
		result := a.run(t, reap.ExitDone, policy)
		if got := result.Report.Summary.Suspected; got != entries {
			t.Errorf("%d reservations are suspected, want %d", got, entries)
		}
	}
	if got := s.toReaper.Mutations()["create configmaps"]; got != 2 {
		t.Errorf("%d ConfigMaps were created, want 2", got)
	}
	if got := s.toReaper.Counts()["get configmaps"]; got < 3 {
		t.Errorf("%d ConfigMaps were read, want one and then both", got)
	}
}
