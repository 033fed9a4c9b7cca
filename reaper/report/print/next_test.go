package print

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// The page prints commands that mean what the run did, and none that the reader cannot type.
func TestWhatToDoNext(t *testing.T) {
	const (
		release  = "Release what is due: ip-reaper run --context prod --node 'worker 7' --dry-run=false"
		remember = "Remember what waits, so that its grace period can end: ip-reaper run --context prod --node 'worker 7' --remember"
		explain  = "Ask why an address is held, here 10.0.0.9 (node unreachable): ip-reaper explain --context prod --state-namespace ip-reaper 10.0.0.9"
		inside   = `Ask why an address is held, here 10.0.0.9 (node unreachable): kubectl ip-reaper explain --context "$(kubectl config current-context)" --state-namespace ip-reaper 10.0.0.9`
		undo     = "Undo the releases of this run: ip-reaper restore --context prod --state-namespace ip-reaper --run 20260301-120000-ABCDEF --dry-run=false"
	)
	for _, tt := range []struct {
		name   string
		change func(*report.Report)
		want   []string
	}{
		{"a dry run", func(*report.Report) {}, []string{release, explain}},
		{"without a memory", func(r *report.Report) { r.Run.Memory = false }, []string{release, remember, explain}},
		{"a release that left something", func(r *report.Report) { r.Run.DryRun, r.Summary.Released = false, 1 }, []string{release, explain, undo}},
		{"a refused plan", func(r *report.Report) { r.Result.Refused = []judge.Refusal{{Limit: "limits.maxReleases"}} }, []string{explain}},
		{"in a cluster", func(r *report.Report) { r.Run.Context = "" }, []string{inside}},
		{"a policy of a pipe", func(r *report.Report) { r.Run.Policy.File = "/dev/fd/63" }, []string{explain}},
		{"nothing is leaked", func(r *report.Report) { r.Leaked = &report.Leaked{} }, nil},
		{"pods unknown", func(r *report.Report) { r.Leaked = nil }, nil},
		{"files", func(r *report.Report) { r.Run = report.RunInfo{DryRun: true, Memory: true} }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := emptyReport()
			r.Run.Program = "ip-reaper"
			r.Leaked = &report.Leaked{Total: 4, Due: 2, Waiting: 1, Held: 1, HeldBy: []report.ReasonCount{{Reason: judge.NodeUnreachable, Count: 1}}}
			r.Entries = []report.Entry{
				{IP: "10.0.0.8", Verdict: judge.Held, Reason: judge.NotPodOwned},
				{IP: "10.0.0.9", Verdict: judge.Held, Reason: judge.NodeUnreachable, Leaked: true},
			}
			tt.change(&r)
			var again []string
			if r.Run.Cluster != "" {
				again = []string{"ip-reaper", "run", "--context", "prod", "--node", "worker 7"}
			}
			var got []string
			for _, one := range nextOf(r, again) {
				got = append(got, one.Says+": "+one.Command)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("next (-want +got):\n%s", diff)
			}
		})
	}
}
