package reaper_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// The bottom line says how much is leaked, and never that nothing is if that is not known.
func TestBottomLine(t *testing.T) {
	leaked := &reaper.Leaked{Total: 1173, Due: 1131, Held: 42, HeldBy: []reaper.ReasonCount{{reaper.NodeUnreachable, 31}, {reaper.RuleHold, 11}}}
	refused := reaper.Result{Refused: []reaper.Refusal{{Limit: "limits.maxReleases"}}}
	ok, failed, skipped := reaper.BackendReport{Name: "calico", Status: reaper.StatusOK}, reaper.BackendReport{Name: "whereabouts"}, reaper.BackendReport{Name: "overlapping", Status: reaper.StatusSkipped}
	blind := []reaper.Entry{{Reason: reaper.NoCensus}}
	for _, tt := range []struct {
		name   string
		report reaper.Report
		want   string
	}{
		{"a dry run", reaper.Report{Run: reaper.RunInfo{DryRun: true}, Leaked: leaked}, "1,173 leaked: 1,131 due now, 0 waiting, 42 held (31 node unreachable, 11 rule hold)"},
		{"a run", reaper.Report{Leaked: &reaper.Leaked{Total: 12, Released: 9, Due: 1, Waiting: 2}}, "12 leaked: 9 released, 1 still due, 2 waiting, 0 held"},
		{"nothing", reaper.Report{Run: reaper.RunInfo{DryRun: true}, Leaked: &reaper.Leaked{}}, "0 leaked: 0 due now, 0 waiting, 0 held"},
		{"a refused dry run", reaper.Report{Run: reaper.RunInfo{DryRun: true}, Leaked: leaked, Result: refused}, "1,173 leaked: 1,131 due now but refused, 0 waiting, 42 held (31 node unreachable, 11 rule hold)"},
		{"a refused run", reaper.Report{Leaked: &reaper.Leaked{Total: 5, Due: 5}, Result: refused}, "5 leaked: 0 released, 5 still due but refused, 0 waiting, 0 held"},
		{"a store failed", reaper.Report{Run: reaper.RunInfo{DryRun: true}, Leaked: &reaper.Leaked{}, Backends: []reaper.BackendReport{ok, failed, skipped}}, "0 leaked: 0 due now, 0 waiting, 0 held; unknown in whereabouts"},
		{"no pods", reaper.Report{Backends: []reaper.BackendReport{ok}, Entries: blind}, "unknown how much is leaked: the pods are not known"},
		{"all stores failed", reaper.Report{Backends: []reaper.BackendReport{failed, skipped}}, "unknown how much is leaked: no store could be listed"},
		{"no store", reaper.Report{Backends: []reaper.BackendReport{skipped}}, "unknown how much is leaked: no store was listed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.report.BottomLine(); got != tt.want {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
}
