package run_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/memory"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// fails makes every request of a kind fail.
func fails(action proxy.Action, requests ...string) func(*fixture) {
	return func(f *fixture) { f.toReaper.Before(proxy.On(requests...), proxy.Always(action)) }
}

// A run that only plans, or that is refused, or that could not list the pods, writes
// nothing anywhere: not the stores, not the ledger, not a journal, not an event; a dry
// run not even the lock (promises 2, 5 and 9).
func TestNothingIsWritten(t *testing.T) {
	const (
		dry       = "apiVersion: ip-reaper/v1alpha1\nkind: ReapPolicy\n" + noCalico
		noCensus  = "held NoCensus kept"
		noPods    = "the cluster has no pods"
		notListed = "list pods"
	)
	atOnce := atOnce + "limits: {maxFraction: 1}\n"
	for _, tt := range []struct {
		name    string
		policy  string
		args    []string
		prepare func(*fixture)
		exit    int
		gone    string // the decision of the entries that have no owner
		says    string // on stderr
	}{
		{"dry run by default", dry + "gracePeriod: 0s\nminAge: 0s\n", nil, nil, reap.ExitDone, planned, ""},
		{"dry run with a grace period to remember", dry + "dryRun: true\nminAge: 0s\n", nil, nil, reap.ExitDone, suspected, ""},
		{"dry run by flag", atOnce, []string{"--dry-run"}, nil, reap.ExitDone, planned, ""},
		{"more than maxReleases", strings.Replace(atOnce, "maxFraction: 1", "maxReleases: 3", 1), nil, nil, reap.ExitLimit, refused, "limits.maxReleases"},
		{
			"more than maxFraction", strings.Replace(atOnce, "maxFraction: 1", "maxFraction: 0.6, minEntries: 6", 1),
			nil, nil, reap.ExitLimit, refused, "limits.maxFraction",
		},
		{"a cluster without a pod", atOnce, nil, (*fixture).deleteAllPods, reap.ExitLimit, refused, noPods},
		{"pods are forbidden", atOnce, nil, fails(proxy.Forbidden(), "list pods"), reap.ExitError, noCensus, notListed},
		{"pods cannot be listed", atOnce, nil, fails(proxy.InternalError(), "list pods"), reap.ExitError, noCensus, notListed},
		{"the connection breaks while pods are listed", atOnce, nil, fails(proxy.Drop(), "list pods"), reap.ExitError, noCensus, notListed},
		{"StatefulSets are forbidden", atOnce, nil, fails(proxy.Forbidden(), "list statefulsets"), reap.ExitError, noCensus, "list statefulsets"},
		{
			"no store can be listed", atOnce, nil, fails(proxy.Forbidden(), "list ippools", "list overlappingrangeipreservations"),
			reap.ExitPartial, "", "forbidden",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.pod("live", cluster.Phase("Pending"))
			f.fill("10.1.0.0/24", map[int]string{1: "gone-1", 2: "gone-2", 3: "live"})
			if tt.prepare != nil {
				tt.prepare(f)
			}
			before := f.versions()
			result := f.reap(tt.exit, tt.policy, tt.args...)
			after := f.versions()
			writes := reap.StoreWrites(f.toReaper.Mutations())
			if result.Report.Run.DryRun {
				writes = f.toReaper.Mutations()
			}
			if tt.exit == reap.ExitPartial { // it goes on, and remembers how many pods there are
				delete(after, "configmaps/"+home+"/"+memory.LedgerName)
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
			got := said(result.Report)
			if got["gone-1"] != tt.gone || got["gone-2"] != tt.gone || tt.gone == noCensus && got["live"] != noCensus {
				t.Errorf("decisions %v, want %q", got, tt.gone)
			}
			f.wantText(result.Stderr, tt.says)
			if tt.gone == planned {
				f.wantDone(result.Report.Summary.Planned)
			}
		})
	}
}

// deleteAllPods leaves a cluster without a pod.
func (f *fixture) deleteAllPods() {
	f.Helper()
	f.must(f.DeletePods(f.Context(), shop))
	f.must(f.DeletePods(f.Context(), "default"))
}

// wantDone fails the test unless the next run releases as much as a dry run has planned.
func (f *fixture) wantDone(want int) {
	f.Helper()
	if got := f.reap(reap.ExitDone, atOnce+"limits: {maxFraction: 1}\n").Report.Summary.Released; got != want || got == 0 {
		f.Errorf("%d were released, and the dry run had planned %d", got, want)
	}
}

// A mistake of the operator is found before the API server is contacted.
func TestMistakeContactsNoServer(t *testing.T) {
	f := newFixture(t)
	f.pod("live", cluster.Phase("Pending"))
	f.fill("10.1.0.0/24", map[int]string{1: "gone-1", 3: "live"})
	before := f.versions()
	const releaseNow = header + "gracePeriod: 0s\n"
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
			f.toReaper.Reset()
			result, err := f.start(tt.policy, tt.args...).Wait()
			f.must(err)
			if result.ExitCode != reap.ExitUsage {
				t.Errorf("exit code %d, want %d\n%s", result.ExitCode, reap.ExitUsage, result.Stderr)
			}
			if got := f.toReaper.Requests(); len(got) > 0 {
				t.Errorf("%d requests, the first %v; want none", len(got), got[0])
			}
		})
	}
	f.wantUnwritten(before)
}
