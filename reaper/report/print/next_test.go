package print

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// The page prints commands that mean what the run did, and none that the reader cannot type.
func TestWhatToDoNext(t *testing.T) {
	const (
		release  = "Release what is due (needs the right to release): ip-reaper run --context prod --node 'worker 7' --dry-run=false"
		again    = "Release what is due, and what is by then (needs the right to release; it looks twice again, which takes a minute or more): ip-reaper run --context prod --node 'worker 7' --wait=2m --dry-run=false"
		twice    = "Look twice, at least a minute apart, in place of the grace period, for 2 of 4 that wait (needs the right to write the ledger): ip-reaper run --context prod --node 'worker 7' --grace-period=60s --wait=6m --dry-run --remember"
		dryTwice = "Look twice, at least a minute apart, in place of the grace period, for 2 of 4 that wait: ip-reaper run --context prod --node 'worker 7' --grace-period=60s --wait=6m --dry-run"
		until    = "Wait until 2026-03-01T13:01:00Z, when a run releases the first of what waits: "
		remember = "Remember what waits, so that its grace period can end (needs the right to write the ledger): ip-reaper run --context prod --node 'worker 7' --remember --dry-run"
		explain  = "Ask why an address is held, here 10.0.0.9 (node unreachable): ip-reaper explain --context prod 10.0.0.9"
		inside   = `Ask why an address is held, here 10.0.0.9 (node unreachable): kubectl ip-reaper explain --context CONTEXT 10.0.0.9`
		worker   = "Addresses wait for nodes that are not ready: 1 for worker-17. Make sure that a node is off, then fence it: ip-reaper explain --context prod node/worker-17"
		workerIn = `Addresses wait for nodes that are not ready: 1 for worker-17. Make sure that a node is off, then fence it: kubectl ip-reaper explain --context CONTEXT node/worker-17`
		undo     = "Undo the releases of this run: ip-reaper restore --context prod --run 20260301-120000-ABCDEF --dry-run=false"
	)
	waiting := func(due *time.Time, wait time.Duration) report.Entry {
		return report.Entry{Verdict: judge.Suspected, Due: due, Wait: wait, Address: &report.Address{Fate: report.Waiting}}
	}
	hour, later := noon.Add(61*time.Minute), noon.Add(2*time.Hour)
	for _, tt := range []struct {
		name   string
		change func(*report.Report)
		want   []string
	}{
		{"a dry run", func(*report.Report) {}, []string{release, twice, explain, worker}},
		{"without a memory", func(r *report.Report) { r.Run.Memory = false }, []string{release, remember, twice, explain, worker}},
		{"what waits waits for long", func(r *report.Report) {
			r.Entries = append(r.Entries[:2], waiting(&hour, 0), waiting(&later, 0))
		}, []string{release, until, explain, worker}},
		{"what waits waits for long, without a memory", func(r *report.Report) {
			r.Run.Memory, r.Entries = false, append(r.Entries[:2], waiting(nil, 0))
		}, []string{release, remember, explain, worker}},
		{"a release that left something", func(r *report.Report) { r.Run.DryRun, r.Summary.Released = false, 1 }, []string{release, twice, explain, worker, undo}},
		{"a refused plan", func(r *report.Report) { r.Result.Refused = []judge.Refusal{{Limit: "limits.maxReleases"}} }, []string{explain, worker}},
		{"what is due is so only for this run", func(r *report.Report) { r.Run.Forgets.Duration = 2 * time.Minute }, []string{again, explain, worker}},
		{"the right to release is missing", func(r *report.Report) { r.Run.Denied = true }, []string{twice, explain, worker}},
		{"the ledger could not be saved", func(r *report.Report) { r.Run.Memory, r.Run.Unsaved = false, true }, []string{release, dryTwice, explain, worker}},
		{"nothing may be written", func(r *report.Report) { r.Run.Memory, r.Run.Barred = false, true }, []string{dryTwice, explain, worker}},
		{"the ledger could not be read", func(r *report.Report) { r.Run.Memory, r.Run.LedgerUnread = false, true }, []string{dryTwice, explain, worker}},
		{"a file in place of the installed policy", func(r *report.Report) { r.Run.Memory, r.Comparison = false, &report.Comparison{} }, []string{dryTwice, explain, worker}},
		{"a file, and the installed policy is unknown", func(r *report.Report) { r.Comparison = &report.Comparison{Missing: "forbidden"} }, []string{dryTwice, explain, worker}},
		{"a file, and no policy is installed", func(r *report.Report) { r.Comparison = &report.Comparison{Missing: "none", NotInstalled: true} }, []string{release, twice, explain, worker}},
		{"a short grace period", func(r *report.Report) { r.Run.Policy.GracePeriod.Duration = time.Minute }, []string{release, explain, worker}},
		{"in a cluster", func(r *report.Report) { r.Run.Context = "" }, []string{inside, workerIn}},
		{"a policy of a pipe", func(r *report.Report) { r.Run.Policy.File = "/dev/fd/63" }, []string{explain, worker}},
		{"nothing is leaked", func(r *report.Report) { r.Leaked, r.Entries = &report.Leaked{}, nil }, nil},
		{"files with leaks", func(r *report.Report) { r.Run = report.RunInfo{DryRun: true, Memory: true} }, []string{"Addresses wait for nodes that are not ready: 1 for worker-17. Make sure that a node is off, then fence it: "}},
		{"pods unknown", func(r *report.Report) { r.Leaked = nil }, nil},
		{"files", func(r *report.Report) { r.Run, r.Entries = report.RunInfo{DryRun: true, Memory: true}, nil }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := emptyReport()
			r.Run.Program, r.Run.Policy.GracePeriod.Duration = "ip-reaper", time.Hour
			r.Leaked = &report.Leaked{Total: 4, Due: 2, Waiting: 4, Held: 4, HeldBy: []report.ReasonCount{{Reason: judge.NodeUnreachable, Count: 1}}}
			r.Entries = []report.Entry{
				{IP: "10.0.0.8", Verdict: judge.Held, Reason: judge.NotPodOwned},
				{IP: "10.0.0.9", Verdict: judge.Held, Reason: judge.NodeUnreachable, Leaked: true,
					Address: &report.Address{Fate: report.Held, Reason: judge.NodeUnreachable}, Evidence: []judge.Evidence{{Source: "node worker-17", Says: "it is not ready"}}},
			}
			for _, wait := range []time.Duration{0, 6 * time.Minute, 7 * time.Minute, 6 * time.Minute} {
				r.Entries = append(r.Entries, waiting(&hour, wait))
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

// A run that remembers would believe another store, or a census that lacks pods, for good, or forget what a restore holds. So
// no command remembers that has a flag for one run.
func TestNothingIsRememberedByARunThatOverridesWhatKeeps(t *testing.T) {
	for _, flag := range []string{"--accept-new-store", "--unsafe-ignore-limit=maxPodDrop", "--release-restored", "--namespace=shop"} {
		r := fullReport()
		r.Run.Memory = false
		remembers := false
		for _, one := range nextOf(r, []string{"ip-reaper", "run", flag}) {
			remembers = remembers || strings.Contains(one.Command, "--remember")
		}
		if remembers != (flag == "--namespace=shop") {
			t.Errorf("%s: a command remembers: %v", flag, remembers)
		}
	}
}

// The report ends with what to type, and says how to undo a release once.
func TestTextEndsWithWhatToTypeNext(t *testing.T) {
	r := fullReport()
	r.Run.Program = "ip-reaper"
	got := printed(t, Options{Format: "table", Run: []string{"ip-reaper", "run"}}, r)
	const want = "\nRelease what is due (needs the right to release)\n  $ ip-reaper run --dry-run=false\n" +
		"Look twice, at least a minute apart, in place of the grace period, for 1 of 1 that wait (needs the right to write the ledger)\n  $ ip-reaper run --grace-period=60s --wait=2m --dry-run --remember\n" +
		"Undo the releases of this run\n  $ ip-reaper restore --context prod --policy policy.yaml --run 20260301-120000-ABCDEF --dry-run=false\n"
	if !strings.HasSuffix(got, want) {
		t.Errorf("it ends with\n%s\nwant\n%s", got[len(got)-len(want):], want)
	}
}

// Of many nodes, those for which most addresses wait are named, and the others counted.
func TestNodesThatAddressesWaitForAreFew(t *testing.T) {
	var r report.Report
	r.Leaked = &report.Leaked{Held: 18}
	add := func(n int, nodes ...string) {
		for range n {
			e := report.Entry{Verdict: judge.Held, Reason: judge.NodeUnreachable, Leaked: true, Address: &report.Address{Fate: report.Held, Reason: judge.NodeUnreachable}}
			for _, node := range nodes {
				e.Evidence = append(e.Evidence, judge.Evidence{Source: "node " + node, Says: "it is not ready"})
			}
			e.IP = fmt.Sprintf("10.0.0.%d", len(r.Entries))
			r.Entries = append(r.Entries, e, e) // an entry and its reservation
		}
	}
	add(1, "a")
	add(2, "b")
	add(5, "c")
	add(4, "d")
	add(3, "e")
	add(3, "a", "b") // it may be on either, so it waits for none of them alone
	var got []string
	for _, one := range nextOf(r, nil) {
		got = append(got, one.Says)
	}
	want := []string{"Addresses wait for nodes that are not ready: 5 for c, 4 for d, 3 for e, 3 for 2 other nodes. Make sure that a node is off, then fence it"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("next (-want +got):\n%s", diff)
	}
}
