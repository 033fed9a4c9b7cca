package report_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Promise 7. An address counts once, by the allocation that keeps it most firmly: the first line
// never says that more becomes free than does.
func TestAddressIsAsFreeAsTheAllocationThatKeepsItMost(t *testing.T) {
	at := func(ip string, e report.Entry) report.Entry {
		e.Backend, e.IP = "store", ip
		return e
	}
	const one = "10.0.0.1"
	due := report.Entry{Verdict: judge.Orphaned, Reason: judge.PodAbsent, Leaked: true, Outcome: report.Planned}
	with := func(e report.Entry, change func(*report.Entry)) report.Entry {
		change(&e)
		return e
	}
	outcome := func(o report.Outcome) report.Entry { return with(due, func(e *report.Entry) { e.Outcome = o }) }
	released, refused, failed := outcome(report.Released), outcome(report.Refused), outcome(report.Failed)
	changed, returned, unselected := outcome(report.Changed), outcome(report.Returned), outcome(report.Kept)
	earlier := with(released, func(e *report.Entry) { e.Earlier = true })
	waiting := report.Entry{Verdict: judge.Suspected, Reason: judge.PodAbsent, Leaked: true, Outcome: report.Kept}
	held := report.Entry{Verdict: judge.Held, Reason: judge.RuleHold, Leaked: true, Outcome: report.Kept}
	sibling := with(held, func(e *report.Entry) { e.Reason = judge.SiblingKept })
	inUse := report.Entry{Verdict: judge.InUse, Reason: judge.PodPresent, Outcome: report.Kept}
	unknown := report.Entry{Verdict: judge.Held, Reason: judge.OwnerUnknown, Outcome: report.Kept}
	otherNetwork := with(inUse, func(e *report.Entry) { e.Network = "blue" })
	all := func(entries ...report.Entry) []report.Entry {
		for i := range entries {
			entries[i] = at(one, entries[i])
		}
		return entries
	}
	by := func(reason judge.Reason) []report.ReasonCount {
		return []report.ReasonCount{{Reason: reason, Count: 1}}
	}
	none := []report.ReasonCount{}
	for _, tt := range []struct {
		name    string
		entries []report.Entry
		left    []*ipam.Allocation // in use, without an entry
		want    report.Leaked
		freed   int // of a dry run
	}{
		{"one allocation", all(due), nil, report.Leaked{Total: 1, Due: 1, HeldBy: none, Allocations: 1}, 1},
		{"two stores, both due", all(due, due), nil, report.Leaked{Total: 1, Due: 1, HeldBy: none, Allocations: 2}, 1},
		{"one waits", all(due, waiting), nil, report.Leaked{Total: 1, Waiting: 1, HeldBy: none, Allocations: 2}, 0},
		{"one is held", all(held, due), nil, report.Leaked{Total: 1, Held: 1, HeldBy: by(judge.RuleHold), Allocations: 2}, 0},
		{"one waits and one is held", all(waiting, held), nil, report.Leaked{Total: 1, Held: 1, HeldBy: by(judge.RuleHold), Allocations: 2}, 0},
		{"two reasons, and one names the other", all(sibling, held), nil, report.Leaked{Total: 1, Held: 1, HeldBy: by(judge.RuleHold), Allocations: 2}, 0},
		{"one is in use", all(due, inUse), nil, report.Leaked{HeldBy: none, Allocations: 1}, 0},
		{"one is in use and has no entry", all(due), []*ipam.Allocation{{Backend: "store", IP: netip.MustParseAddr(one)}}, report.Leaked{HeldBy: none, Allocations: 1}, 0},
		{"another address is in use and has no entry", all(due), []*ipam.Allocation{{Backend: "store", IP: netip.MustParseAddr("10.0.0.2")}}, report.Leaked{Total: 1, Due: 1, HeldBy: none, Allocations: 1}, 1},
		{"one has an unknown owner", all(unknown, due), nil, report.Leaked{HeldBy: none, Allocations: 1}, 0},
		{"the same address of another network is in use", all(due, otherNetwork), nil, report.Leaked{Total: 1, Due: 1, HeldBy: none, Allocations: 1}, 1},
		{"one is not selected", all(due, unselected), nil, report.Leaked{Total: 1, Due: 1, HeldBy: none, Allocations: 2}, 0},
		{"a limit refuses both", all(refused, refused), nil, report.Leaked{Total: 1, Due: 1, HeldBy: none, Allocations: 2}, 1},
		{"both are released", all(released, released), nil, report.Leaked{Total: 1, Released: 1, HeldBy: none, Allocations: 2}, 1},
		{"one release failed", all(released, failed), nil, report.Leaked{Total: 1, Due: 1, HeldBy: none, Allocations: 2}, 0},
		{"one changed hands", all(released, changed), nil, report.Leaked{HeldBy: none, Allocations: 1}, 0},
		{"the owner of one came back", all(returned, released), nil, report.Leaked{HeldBy: none, Allocations: 1}, 0},
		{"released before a wait, and in use since", all(earlier), []*ipam.Allocation{{Backend: "store", IP: netip.MustParseAddr(one)}}, report.Leaked{Total: 1, Released: 1, HeldBy: none, Allocations: 1}, 1},
		{"released before a wait, and the other store still has it", all(earlier, waiting), nil, report.Leaked{Total: 1, Waiting: 1, HeldBy: none, Allocations: 2}, 0},
		{"no address", []report.Entry{at("", due)}, nil, report.Leaked{HeldBy: none, Allocations: 1, WithoutAddress: 1}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := report.Report{Run: report.RunInfo{DryRun: true}, Backends: []report.BackendReport{{Name: "store", Status: ipam.StatusOK}}, Entries: tt.entries}
			r.Tally(tt.left...)
			if diff := cmp.Diff(tt.want, *r.Leaked); diff != "" {
				t.Errorf("leaked (-want +got):\n%s", diff)
			}
			if sum := r.Leaked.Due + r.Leaked.Released + r.Leaked.Waiting + r.Leaked.Held; sum != r.Leaked.Total {
				t.Errorf("the parts are %d, and the total is %d", sum, r.Leaked.Total)
			}
			if got := r.Freed(); got != tt.freed {
				t.Errorf("freed = %d, want %d", got, tt.freed)
			}
		})
	}
}

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
