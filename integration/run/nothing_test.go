package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit"
	"github.com/ip-reaper/ip-reaper/integration/kit/cluster"
	"github.com/ip-reaper/ip-reaper/integration/kit/proxy"
	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// fails makes every request of these kinds fail.
func fails(action proxy.Action, requests ...string) func(*fixture) {
	return func(f *fixture) { f.toReaper.Before(proxy.On(requests...), proxy.Always(action)) }
}

// A run that only plans, is refused, or could not list the pods or what protects addresses, writes
// to no store and writes no journal: only how it ended into the ledger, and a dry run
// not even that, nor the lock (promises 2, 5 and 9).
func TestNothingIsWritten(t *testing.T) {
	const (
		noCensus = "held NoCensus kept"
		atOnce   = "limits: {maxFraction: 1}\n" + atOnce
	)
	for _, tt := range []struct {
		name    string
		policy  string
		args    []string
		prepare func(*fixture)
		exit    int
		gone    string // the decision for ownerless entries
		says    string // on stderr
	}{
		{"dry run", atOnce, []string{"--dry-run"}, nil, reap.ExitDone, planned, ""},
		{
			"more than maxFraction", strings.Replace(atOnce, "maxFraction: 1", "maxFraction: 0.6, minEntries: 6", 1),
			nil, nil, reap.ExitLimit, refused, "limits.maxFraction",
		},
		{"pods are forbidden", atOnce, nil, fails(proxy.Forbidden(), "list pods"), reap.ExitError, noCensus, "list pods"},
		{
			"reserved IPs are forbidden", atOnce + kit.ReservedIPSettings, nil, fails(proxy.Forbidden(), "list reservedips"), reap.ExitPartial, "held Protected kept",
			"list reservedips.v1alpha1.network.example.com: grant list on it to ip-reaper, or remove it from the policy",
		},
		{
			"objects reserve them", atOnce + kit.ReservedIPSettings, nil, func(f *fixture) {
				f.must(reservation("gone-1").Create(f.Context(), f.Cluster))
				f.must(reservation("gone-2").Create(f.Context(), f.Cluster))
			}, reap.ExitDone, "held Protected kept", "",
		},
		{
			"no store can be listed", atOnce, nil, fails(proxy.Forbidden(), "list ippools", "list overlappingrangeipreservations"),
			reap.ExitPartial, "", "forbidden",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			f.network = wide
			f.pod("live", cluster.Phase("Pending"))
			for _, pod := range []string{"gone-1", "gone-2", "live"} {
				f.leak(pod)
			}
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
			if !result.Report.Run.DryRun { // the ledger records how the run ended
				delete(after, "configmaps/"+home+"/"+reap.LedgerName)
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

// wantDone fails the test unless the next run releases as much as a dry run planned.
func (f *fixture) wantDone(want int) {
	f.Helper()
	if got := f.reap(reap.ExitDone, atOnce+"limits: {maxFraction: 1}\n").Report.Summary.Released; got != want || got == 0 {
		f.Errorf("%d were released, and the dry run had planned %d", got, want)
	}
}

// reservation is an object that keeps addresses for a pod, and what else the pod has, for a day.
func reservation(pod string, ips ...string) kit.Object {
	return kit.Object{
		Resource: kit.ReservedIPObjects, Namespace: shop, Name: pod,
		Raw: fmt.Appendf(nil, `{"apiVersion":"network.example.com/v1alpha1","kind":"ReservedIP","metadata":{"name":%q},"spec":{"pod":%q,"ttl":"24h"},"status":{"ips":["%s"]}}`,
			pod, pod, strings.Join(ips, `","`)),
	}
}
