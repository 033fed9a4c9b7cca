package safety_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// fails makes every request of a kind fail.
func fails(action proxy.Action, requests ...string) func(*scene) {
	return func(s *scene) { s.toReaper.Before(proxy.On(requests...), proxy.Always(action)) }
}

// A run that only plans, or that is refused, or that could not ask who is
// alive, writes nothing anywhere: not the stores, not the ledger, not a journal,
// not an event; a dry run not even the lock (promises 2, 5 and 9).
func TestNothingIsWritten(t *testing.T) {
	for _, tt := range []struct {
		name    string
		policy  string
		args    []string
		nobody  bool // no pod is alive
		prepare func(*scene)
		exit    int
	}{
		{"dry run by default", policyHead + "gracePeriod: 0s\nminAge: 0s\n", nil, false, nil, reap.ExitDone},
		{"dry run with a grace period to remember", policyHead + "dryRun: true\nminAge: 0s\n", nil, false, nil, reap.ExitDone},
		{"dry run by flag", releaseNow, []string{"--dry-run"}, false, nil, reap.ExitDone},
		{"more than maxReleases", releaseNow + "limits: {maxReleases: 3}\n", nil, false, nil, reap.ExitLimit},
		{"more than maxFraction", releaseNow + "limits: {maxFraction: 0.6, minEntries: 6}\n", nil, false, nil, reap.ExitLimit},
		{"a cluster without a pod", releaseNow, nil, true, nil, reap.ExitLimit},
		{"pods are forbidden", releaseNow, nil, false, fails(proxy.Forbidden(), "list pods"), reap.ExitError},
		{"pods cannot be listed", releaseNow, nil, false, fails(proxy.InternalError(), "list pods"), reap.ExitError},
		{"the connection breaks while pods are listed", releaseNow, nil, false, fails(proxy.Drop(), "list pods"), reap.ExitError},
		{"StatefulSets are forbidden", releaseNow, nil, false, fails(proxy.Forbidden(), "list statefulsets"), reap.ExitError},
		{
			"no store can be listed", releaseNow, nil, false,
			fails(proxy.Forbidden(), "list ippools", "list overlappingrangeipreservations"), reap.ExitPartial,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			if !tt.nobody {
				s.pod(t, "live")
			}
			s.put(t, "10.1.0.0/24", map[int]string{1: "gone-1", 2: "gone-2", 3: "live"})
			if tt.prepare != nil {
				tt.prepare(s)
			}
			before := s.versions(t)
			result := s.run(t, tt.exit, tt.policy, tt.args...)
			after := s.versions(t)
			writes := reap.StoreWrites(s.toReaper.Mutations())
			if result.Report.Run.DryRun {
				writes = s.toReaper.Mutations()
			}
			delete(after, "leases.coordination.k8s.io/"+s.ledgerIn+"/ip-reaper")
			if tt.exit == reap.ExitPartial { // it goes on, and remembers how many pods there are
				delete(after, "configmaps/"+s.ledgerIn+"/ip-reaper-ledger")
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("versions (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(map[string]int{}, writes); diff != "" {
				t.Errorf("mutating requests (-want +got):\n%s", diff)
			}
			if got := result.Report.Summary.Released; got != 0 {
				t.Errorf("the report says that %d were released", got)
			}
		})
	}
}

// versions are the versions of all objects in the cluster.
func (s *scene) versions(t *testing.T) map[string]string {
	t.Helper()
	versions, err := s.Versions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

// What the operator got wrong is found before anybody is contacted.
func TestMistakeContactsNobody(t *testing.T) {
	s := newScene(t)
	s.pod(t, "live")
	s.put(t, "10.1.0.0/24", map[int]string{1: "gone-1", 3: "live"})
	for _, tt := range []struct {
		name, policy string
		args         []string
	}{
		{"unknown field", releaseNow + "graceperiod: 1h\n", nil},
		{"key given twice", releaseNow + "dryRun: true\n", nil},
		{"unknown backend", releaseNow + "backends: {wherabouts: {enabled: true}}\n", nil},
		{"not YAML", "dryRun: [", nil},
		{"value out of range", releaseNow + "limits: {maxFraction: 2}\n", nil},
		{"unknown format", releaseNow, []string{"--output", "xml"}},
		{"unknown flag", releaseNow, []string{"--drift"}},
		{"no context", releaseNow, []string{"--context", ""}},
		{"unknown context", releaseNow, []string{"--context", "elsewhere"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.toReaper.Reset()
			before := s.versions(t)
			s.run(t, reap.ExitUsage, tt.policy, tt.args...)
			if got := s.toReaper.Requests(); len(got) > 0 {
				t.Errorf("%d requests, the first %v; want none", len(got), got[0])
			}
			if diff := cmp.Diff(before, s.versions(t)); diff != "" {
				t.Errorf("versions (-before +after):\n%s", diff)
			}
		})
	}
}
