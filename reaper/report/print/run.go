package print

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// viewOf returns the view of the report of a run. With all, nothing is folded.
func viewOf(r report.Report, all bool) view {
	return view{
		value: r,
		head:  headOf(r),
		tables: func(wide bool) []table {
			return []table{backendTable(r), poolTable(r, all || wide), entryTable(r, wide, all || wide)}
		},
		caveats:    r.Run.Caveats,
		warnings:   r.Warnings,
		conclusion: conclusion(r),
		undo:       undo(r),
		names:      func() []string { return namesOf(r) },
		states:     func() string { return statesOf(r.Entries, stateOf) },
	}
}

// backendTable returns one row for each store, with the numbers of its allocations. The counts
// of a store that could not be listed are unknown. A dry run has no outcomes.
func backendTable(r report.Report) table {
	t := table{heading: []string{"BACKEND", "STATUS", "ALLOCATIONS", "IN USE", "HELD", "SUSPECTED", "PLANNED", "RELEASED", "CHANGED", "FAILED", "MESSAGE"}}
	for _, b := range r.Backends {
		row := []string{b.Name, b.Status.String()}
		for _, n := range []int{b.Entries, b.InUse, b.Held, b.Suspected, b.Planned} {
			row = append(row, countOf(b, n))
		}
		for _, n := range []int{b.Released, b.Changed, b.Failed} {
			if r.Run.DryRun {
				row = append(row, "")
				continue
			}
			row = append(row, countOf(b, n))
		}
		t.rows = append(t.rows, append(row, b.Message))
	}
	return t
}

// countOf returns a count of a backend for people.
func countOf(b report.BackendReport, n int) string {
	switch {
	case b.Counted():
		return strconv.Itoa(n)
	case b.Status == ipam.StatusSkipped:
		return "-"
	default:
		return unknown
	}
}

// poolTable returns one row for each pool, those with the most findings first. Without all, it
// folds the pools without a finding, and the rest if there are many.
func poolTable(r report.Report, all bool) table {
	t := table{heading: []string{"POOL", "RANGE", "CAPACITY", "BEFORE", "AFTER", "LEAKED", "PROTECTED", "FREE"}}
	shown := slices.Clone(r.Pools)
	slices.SortStableFunc(shown, func(a, b report.PoolReport) int { return findings(b) - findings(a) })
	var rest []report.PoolReport
	if !all {
		shown, rest = foldPools(shown)
	}
	for _, p := range shown {
		leaked, protected := strconv.Itoa(p.Leaked), ""
		if r.Leaked == nil {
			leaked = unknown
		}
		if p.Protected > 0 {
			protected = strconv.Itoa(p.Protected)
		}
		t.rows = append(t.rows, []string{
			p.Name, p.Range, sizeOf(p.Capacity), strconv.Itoa(p.AllocatedBefore), strconv.Itoa(p.AllocatedAfter),
			leaked, protected, sizeOf(p.Free),
		})
	}
	if len(rest) > 0 {
		noun, leaked := "more pool", unknown
		if len(shown) == 0 {
			noun = "pool"
		}
		if r.Leaked != nil {
			n := 0
			for _, p := range rest {
				n += p.Leaked
			}
			leaked = printable.Thousands(n)
		}
		t.fold("and %s, leaked in them: %s", printable.Counted(len(rest), noun), leaked)
	}
	return t
}

// namesOf returns the addresses that the run released or, in a dry run, would release. If
// the plan was refused, a dry run would release none.
func namesOf(r report.Report) []string {
	var names []string
	for _, e := range r.Entries {
		if e.Outcome == report.Released || e.Outcome == report.Planned && len(r.Result.Refused) == 0 {
			names = append(names, e.IP)
		}
	}
	return addresses(names)
}

// conclusion returns the report in one sentence, and a line with the command that undoes
// the releases.
func conclusion(r report.Report) []string {
	s, freed := r.Summary, printable.Counted(r.Freed(), "address")
	refused := len(r.Result.Refused) > 0
	if r.Run.DryRun {
		written := "nothing was written"
		if r.Run.Remember {
			written = "no store was written"
		}
		if refused {
			return []string{fmt.Sprintf("dry run: the plan to free %s (%d of %d allocations) is refused, %s", freed, s.Planned, s.Entries, written)}
		}
		return []string{fmt.Sprintf("dry run: %s (%d of %d allocations) would be released, %s", freed, s.Planned, s.Entries, written)}
	}
	planned := fmt.Sprintf("%d planned", s.Planned)
	if refused {
		planned += " and refused"
	}
	waiting := ""
	if s.Deleting > 0 {
		waiting = fmt.Sprintf(", %d being deleted", s.Deleting)
	}
	if s.NotBegun > 0 {
		waiting += fmt.Sprintf(", %d not begun", s.NotBegun)
	}
	lines := []string{fmt.Sprintf("released %s (%d of %d allocations; %s, %d changed meanwhile%s, %d failed)",
		freed, s.Released, s.Entries, planned, s.Changed, waiting, s.Failed)}
	return append(lines, undo(r)...)
}

// undo returns the line with the command that undoes the releases, if there are any.
func undo(r report.Report) []string {
	if r.Summary.Released == 0 {
		return nil
	}
	return []string{"undo with: " + undoOn(r.Run)}
}

// shownPools is the most rows of pools that are shown.
const shownPools = 20

// findings returns how many addresses of a pool a person should know about.
func findings(p report.PoolReport) int {
	n := p.Leaked + p.Protected + max(p.AllocatedBefore-p.AllocatedAfter, 0)
	if n == 0 && p.ProtectedBy != "" {
		n = 1
	}
	return n
}

// foldPools splits sorted pools into those that are shown and the rest, which is never just one.
func foldPools(pools []report.PoolReport) (shown, rest []report.PoolReport) {
	n := slices.IndexFunc(pools, func(p report.PoolReport) bool { return findings(p) == 0 })
	if n < 0 || n > shownPools {
		n = min(len(pools), shownPools)
	}
	if len(pools) <= n+1 { // a fold of one would be no shorter
		return pools, nil
	}
	return pools[:n], pools[n:]
}
