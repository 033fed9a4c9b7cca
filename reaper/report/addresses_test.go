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
	const one = "10.0.0.1"
	type allocation struct {
		ip, network string
		ruling      judge.Ruling
		outcome     report.Fate
		earlier     bool
	}
	due := allocation{ip: one, ruling: judge.Ruling{Verdict: judge.Orphaned, Reason: judge.PodAbsent, Ownerless: true}, outcome: report.Planned}
	with := func(a allocation, change func(*allocation)) allocation {
		change(&a)
		return a
	}
	outcome := func(o report.Fate) allocation { return with(due, func(a *allocation) { a.outcome = o }) }
	ruled := func(v judge.Verdict, reason judge.Reason, ownerless bool) allocation {
		return allocation{ip: one, ruling: judge.Ruling{Verdict: v, Reason: reason, Ownerless: ownerless}}
	}
	released, refused, failed := outcome(report.Released), outcome(report.Refused), outcome(report.Failed)
	changed, returned, unselected := outcome(report.Changed), outcome(report.Returned), outcome(report.Kept)
	earlier := with(released, func(a *allocation) { a.earlier = true })
	waiting := ruled(judge.Suspected, judge.PodAbsent, true)
	held := ruled(judge.Held, judge.RuleHold, true)
	sibling := ruled(judge.Held, judge.SiblingKept, true)
	inUse := ruled(judge.InUse, judge.PodPresent, false)
	unknown := ruled(judge.Held, judge.OwnerUnknown, false)
	foreign := ruled(judge.Held, judge.NodeForeign, false)
	young := ruled(judge.Held, judge.TooYoung, true)
	tunnel := ruled(judge.Held, judge.NotPodOwned, false)
	otherNetwork := with(inUse, func(a *allocation) { a.network = "blue" })
	noAddress := with(due, func(a *allocation) { a.ip = "" })
	all := func(allocations ...allocation) []allocation { return allocations }
	by := func(reason judge.Reason) []report.ReasonCount {
		return []report.ReasonCount{{Reason: reason, Count: 1}}
	}
	none := []report.ReasonCount{}
	for _, tt := range []struct {
		name    string
		found   []allocation
		noEntry string // the address of another one, in use and without an entry
		want    report.Leaked
		freed   int // of a dry run
	}{
		{"one allocation", all(due), "", report.Leaked{Total: 1, Due: 1, HeldBy: none, UndecidedBy: none, Allocations: 1}, 1},
		{"two stores, both due", all(due, due), "", report.Leaked{Total: 1, Due: 1, HeldBy: none, UndecidedBy: none, Allocations: 2}, 1},
		{"one waits", all(due, waiting), "", report.Leaked{Total: 1, Waiting: 1, HeldBy: none, UndecidedBy: none, Allocations: 2}, 0},
		{"one is held", all(held, due), "", report.Leaked{Total: 1, Held: 1, HeldBy: by(judge.RuleHold), UndecidedBy: none, Allocations: 2}, 0},
		{"one waits and one is held", all(waiting, held), "", report.Leaked{Total: 1, Held: 1, HeldBy: by(judge.RuleHold), UndecidedBy: none, Allocations: 2}, 0},
		{"two reasons, and one names the other", all(sibling, held), "", report.Leaked{Total: 1, Held: 1, HeldBy: by(judge.RuleHold), UndecidedBy: none, Allocations: 2}, 0},
		{"one is in use", all(due, inUse), "", report.Leaked{HeldBy: none, UndecidedBy: none, Allocations: 1}, 0},
		{"one is in use and has no entry", all(due), one, report.Leaked{HeldBy: none, UndecidedBy: none, Allocations: 1}, 0},
		{"another address is in use and has no entry", all(due), "10.0.0.2", report.Leaked{Total: 1, Due: 1, HeldBy: none, UndecidedBy: none, Allocations: 1}, 1},
		{"one has an unknown owner", all(unknown, due), "", report.Leaked{HeldBy: none, Undecided: 1, UndecidedBy: by(judge.OwnerUnknown), Allocations: 1}, 0},
		{"two stores have it, both without an owner", all(unknown, unknown), "", report.Leaked{HeldBy: none, Undecided: 1, UndecidedBy: by(judge.OwnerUnknown)}, 0},
		{"another cluster may have it", all(foreign), "", report.Leaked{HeldBy: none, Undecided: 1, UndecidedBy: by(judge.NodeForeign)}, 0},
		{"it is too young to tell", all(young), "", report.Leaked{HeldBy: none, Undecided: 1, UndecidedBy: by(judge.TooYoung)}, 0},
		{"one is too young, and its sibling waits for that", all(sibling, young), "", report.Leaked{HeldBy: none, Undecided: 1, UndecidedBy: by(judge.TooYoung), Allocations: 1}, 0},
		{"one is too young and one waits", all(young, waiting), "", report.Leaked{HeldBy: none, Undecided: 1, UndecidedBy: by(judge.TooYoung), Allocations: 1}, 0},
		{"one has an unknown owner and one is in use", all(unknown, inUse), "", report.Leaked{HeldBy: none, UndecidedBy: none}, 0},
		{"it belongs to no pod", all(tunnel), "", report.Leaked{HeldBy: none, UndecidedBy: none}, 0},
		{"the same address of another network is in use", all(due, otherNetwork), "", report.Leaked{Total: 1, Due: 1, HeldBy: none, UndecidedBy: none, Allocations: 1}, 1},
		{"one is not selected", all(due, unselected), "", report.Leaked{Total: 1, Due: 1, HeldBy: none, UndecidedBy: none, Allocations: 2}, 0},
		{"a limit refuses both", all(refused, refused), "", report.Leaked{Total: 1, Due: 1, HeldBy: none, UndecidedBy: none, Allocations: 2}, 1},
		{"both are released", all(released, released), "", report.Leaked{Total: 1, Released: 1, HeldBy: none, UndecidedBy: none, Allocations: 2}, 1},
		{"one release failed", all(released, failed), "", report.Leaked{Total: 1, Due: 1, HeldBy: none, UndecidedBy: none, Allocations: 2}, 0},
		{"one changed hands", all(released, changed), "", report.Leaked{HeldBy: none, UndecidedBy: none, Allocations: 1}, 0},
		{"the owner of one came back", all(returned, released), "", report.Leaked{HeldBy: none, UndecidedBy: none, Allocations: 1}, 0},
		{"released before a wait, and in use since", all(earlier), one, report.Leaked{Total: 1, Released: 1, HeldBy: none, UndecidedBy: none, Allocations: 1}, 1},
		{"released before a wait, and the other store still has it", all(earlier, waiting), "", report.Leaked{Total: 1, Waiting: 1, HeldBy: none, UndecidedBy: none, Allocations: 2}, 0},
		{"no address", all(noAddress), "", report.Leaked{HeldBy: none, UndecidedBy: none, Allocations: 1, WithoutAddress: 1}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := report.Results{
				Run:       report.RunInfo{DryRun: true},
				Inventory: ipam.Inventory{Listings: []ipam.Listing{{Backend: "store", Status: ipam.StatusOK}}},
				Outcomes:  make(map[int]report.Done),
				HasTimes:  func(*judge.Decision) bool { return true },
			}
			for _, a := range tt.found {
				ip, _ := netip.ParseAddr(a.ip)
				d := judge.Decision{Allocation: &ipam.Allocation{Backend: "store", Pool: a.network, Network: a.network, IP: ip}, Ruling: a.ruling}
				done := report.Done{Outcome: a.outcome}
				if a.earlier {
					f.Earlier = append(f.Earlier, report.EntryOf(&d, done))
					continue
				}
				f.Outcomes[len(f.Verdicts.Decisions)] = done
				f.Verdicts.Decisions = append(f.Verdicts.Decisions, d)
			}
			if tt.noEntry != "" {
				f.Verdicts.InUse = []judge.Live{{Allocation: &ipam.Allocation{Backend: "store", IP: netip.MustParseAddr(tt.noEntry)}}}
			}
			r := report.Make(f)
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

// An address counts as that of a pod that shows others only if nothing keeps it more firmly. It is
// live all the same.
func TestLiveAddressOfAPodThatShowsOthersIsCounted(t *testing.T) {
	live, byName := judge.Ruling{Verdict: judge.InUse}, judge.Ruling{Verdict: judge.InUse, ByName: true}
	due := judge.Ruling{Verdict: judge.Orphaned, Reason: judge.PodAbsent, Ownerless: true}
	var found []judge.Decision
	for _, on := range []struct {
		ip     string
		ruling judge.Ruling
	}{{"10.0.0.1", byName}, {"10.0.0.2", live}, {"10.0.0.3", byName}, {"10.0.0.3", live}, {"10.0.0.4", byName}, {"10.0.0.4", due}} {
		a := &ipam.Allocation{Backend: "store", Pool: "pool", Network: "net", IP: netip.MustParseAddr(on.ip)}
		found = append(found, judge.Decision{Allocation: a, Ruling: on.ruling})
	}
	r := report.Make(report.Results{
		Inventory: ipam.Inventory{Listings: []ipam.Listing{{Backend: "store", Status: ipam.StatusOK}}},
		Layout: report.Layout{
			Networks: []report.NetworkReport{{Backend: "store", Name: "net", Pools: []string{"pool"}}},
			Pools:    []report.PoolReport{{Backend: "store", Name: "pool"}},
		},
		Verdicts: judge.Verdicts{Decisions: found}, HasTimes: func(*judge.Decision) bool { return true },
	})
	if u := r.Networks[0].Usage; u.Live != 4 || u.ByName != 2 || u.Used != 4 || u.Leaked != 0 {
		t.Errorf("%d live, %d of them by name, %d leaked, %d used; want 4, 2, 0 and 4", u.Live, u.ByName, u.Leaked, u.Used)
	}
	if r.Leaked.Total != 0 {
		t.Errorf("%d leaked, want none", r.Leaked.Total)
	}
}

// What an earlier round released was there before the run, and is gone after it, although the last
// listing does not have it.
func TestPoolHadWhatAnEarlierRoundReleased(t *testing.T) {
	r := report.Make(report.Results{
		Inventory: ipam.Inventory{Listings: []ipam.Listing{{Backend: "store", Status: ipam.StatusOK}}},
		Layout:    report.Layout{Pools: []report.PoolReport{{Backend: "store", Name: "pool", AllocatedBefore: 2}}},
		Earlier:   []report.Entry{{Backend: "store", Pool: "pool", IP: "10.0.0.1", Verdict: judge.Orphaned, Leaked: true, Outcome: report.Released}},
	})
	if p := r.Pools[0]; p.AllocatedBefore != 3 || p.AllocatedAfter != 2 {
		t.Errorf("before %d, after %d, want 3 and 2", p.AllocatedBefore, p.AllocatedAfter)
	}
}

// The bottom line says how much is leaked, and never that nothing is if that is not known.
func TestBottomLine(t *testing.T) {
	leaked := &report.Leaked{Total: 1173, Due: 1131, Held: 42, HeldBy: []report.ReasonCount{{Reason: judge.NodeUnreachable, Count: 31}, {Reason: judge.RuleHold, Count: 11}}}
	refused := report.Result{Refused: []judge.Refusal{{Limit: "limits.maxReleases"}}}
	ok, failed, skipped := report.BackendReport{Name: "calico", Status: ipam.StatusOK}, report.BackendReport{Name: "whereabouts"}, report.BackendReport{Name: "overlapping", Status: ipam.StatusSkipped}
	lacks := report.BackendReport{Name: "calico", Status: ipam.StatusSkipped, Message: "not installed: no ipamblocks"}
	blind := []report.Entry{{Reason: judge.NoCensus}}
	first := report.RunInfo{DryRun: true, Origin: report.Origin{Cluster: "https://10.0.0.1"}}
	nowhere := first
	nowhere.NoState = true
	heldByRule := []report.ReasonCount{{Reason: judge.RuleHold, Count: 1}}
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
		{"undecided", report.Report{Run: report.RunInfo{DryRun: true}, Leaked: &report.Leaked{Undecided: 1234, UndecidedBy: []report.ReasonCount{{Reason: judge.OwnerUnknown, Count: 1230}, {Reason: judge.NodeForeign, Count: 4}}}},
			"0 leaked addresses: 0 due now, 0 waiting, 0 held; 1,234 undecided (1,230 owner unknown, 4 node foreign)"},
		{"too young to tell", report.Report{Run: report.RunInfo{DryRun: true}, Leaked: &report.Leaked{Undecided: 5, UndecidedBy: []report.ReasonCount{{Reason: judge.TooYoung, Count: 3}, {Reason: judge.OwnerUnknown, Count: 2}}}},
			"0 leaked addresses: 0 due now, 0 waiting, 0 held; 3 waiting, too young to tell; 2 undecided (2 owner unknown)"},
		{"a first run", report.Report{Run: first, Leaked: &report.Leaked{Total: 2, Waiting: 2}},
			"2 leaked addresses: 0 held, 2 waiting, not timed yet: start the clock with --remember"},
		{"a first run that finds something due", report.Report{Run: first, Leaked: &report.Leaked{Total: 4, Due: 1, Waiting: 2, Held: 1, HeldBy: heldByRule}},
			"4 leaked addresses: 1 due now, 1 held (1 rule hold), 2 waiting, not timed yet: start the clock with --remember"},
		{"a first run on a node", report.Report{Run: report.RunInfo{DryRun: true, Origin: report.Origin{Node: "n1"}}, Leaked: &report.Leaked{Total: 2, Waiting: 2}},
			"2 leaked addresses: 0 held, 2 waiting, not timed yet: start the clock with --remember"},
		{"a run without a state namespace", report.Report{Run: nowhere, Leaked: &report.Leaked{Total: 2, Waiting: 2}}, "2 leaked addresses: 0 due now, 2 waiting, 0 held"},
		{"a run that has a ledger", report.Report{Run: report.RunInfo{DryRun: true, Memory: true, Origin: first.Origin}, Leaked: &report.Leaked{Total: 2, Waiting: 2}},
			"2 leaked addresses: 0 due now, 2 waiting, 0 held"},
		{"a store failed", report.Report{Run: report.RunInfo{DryRun: true}, Leaked: &report.Leaked{}, Backends: []report.BackendReport{ok, failed, skipped}}, "0 leaked addresses: 0 due now, 0 waiting, 0 held; unknown in whereabouts"},
		{"no pods", report.Report{Backends: []report.BackendReport{ok}, Entries: blind}, "leak count unknown: pods unknown"},
		{"all stores failed", report.Report{Backends: []report.BackendReport{failed, skipped}}, "leak count unknown: no store was listed"},
		{"all stores are disabled", report.Report{Backends: []report.BackendReport{skipped}}, "leak count unknown: no store was listed"},
		{"no store is installed", report.Report{Backends: []report.BackendReport{lacks, lacks}}, "no IPAM that ip-reaper knows is installed here"},
		{"a store is disabled, and no other installed", report.Report{Backends: []report.BackendReport{lacks, skipped}}, "leak count unknown: no store was listed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.report.BottomLine(); got != tt.want {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
}
