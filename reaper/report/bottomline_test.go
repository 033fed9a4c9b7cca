package report_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// The bottom line says how much is leaked, and never that nothing is if that is not known.
func TestBottomLine(t *testing.T) {
	leaked := &report.Leaked{Total: 1173, Due: 1131, Held: 42, HeldBy: []report.ReasonCount{{Reason: judge.NodeUnreachable, Count: 31}, {Reason: judge.RuleHold, Count: 11}}}
	refused := report.Result{Refused: []judge.Refusal{{Limit: "limits.maxReleases"}}}
	ok, failed, skipped := report.BackendReport{Name: "calico", Status: ipam.StatusOK}, report.BackendReport{Name: "whereabouts"}, report.BackendReport{Name: "overlapping", Status: ipam.StatusSkipped}
	blind := []report.Entry{{Reason: judge.NoCensus}}
	for _, tt := range []struct {
		name   string
		report report.Report
		want   string
	}{
		{"a dry run", report.Report{Run: report.RunInfo{DryRun: true}, Leaked: leaked}, "1,173 leaked addresses: 1,131 due now, 0 waiting, 42 held (31 node unreachable, 11 rule hold)"},
		{"a run", report.Report{Leaked: &report.Leaked{Total: 12, Released: 9, Due: 1, Waiting: 2}}, "12 leaked addresses: 9 released, 1 still due, 2 waiting, 0 held"},
		{"nothing", report.Report{Run: report.RunInfo{DryRun: true}, Leaked: &report.Leaked{}}, "0 leaked addresses: 0 due now, 0 waiting, 0 held"},
		{"a refused dry run", report.Report{Run: report.RunInfo{DryRun: true}, Leaked: leaked, Result: refused}, "1,173 leaked addresses: 1,131 due now but refused, 0 waiting, 42 held (31 node unreachable, 11 rule hold)"},
		{"a refused run", report.Report{Leaked: &report.Leaked{Total: 5, Due: 5}, Result: refused}, "5 leaked addresses: 0 released, 5 still due but refused, 0 waiting, 0 held"},
		{"a store failed", report.Report{Run: report.RunInfo{DryRun: true}, Leaked: &report.Leaked{}, Backends: []report.BackendReport{ok, failed, skipped}}, "0 leaked addresses: 0 due now, 0 waiting, 0 held; unknown in whereabouts"},
		{"no pods", report.Report{Backends: []report.BackendReport{ok}, Entries: blind}, "leak count unknown: pods unknown"},
		{"all stores failed", report.Report{Backends: []report.BackendReport{failed, skipped}}, "leak count unknown: could not list any store"},
		{"no store", report.Report{Backends: []report.BackendReport{skipped}}, "leak count unknown: no store was listed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.report.BottomLine(); got != tt.want {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
}
