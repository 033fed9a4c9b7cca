package print

import (
	"cmp"
	"fmt"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// viewOf returns the view of the report of a run. With all, nothing is folded.
func viewOf(r report.Report, all bool) view {
	return view{
		value: r,
		now:   r.Run.FinishedAt,
		head:  headOf(r),
		tables: func(wide bool) []table {
			return []table{backendTable(r), poolTable(r, all || wide), entryTable(r, wide, all || wide), changeTable(r.Comparison, all || wide)}
		},
		caveats:    r.Run.Caveats,
		warnings:   r.Warnings,
		conclusion: []string{conclusion(r)},
		names:      func() []string { return namesOf(r) },
		states:     func() string { return statesOf(r.Entries, fateOnPage) },
	}
}

// backendTable returns one row for each store. How many allocations a store has is unknown if it
// could not be listed.
func backendTable(r report.Report) table {
	t := table{heading: []string{"BACKEND", "STATUS", "ALLOCATIONS", "MESSAGE"}}
	for _, b := range r.Backends {
		n := unknown
		switch {
		case b.Counted():
			n = printable.Thousands(b.Entries)
		case b.Status == ipam.StatusSkipped:
			n = "-"
		}
		t.rows = append(t.rows, []string{b.Name, b.Status.String(), n, b.Message})
	}
	return t
}

// changeTable returns one row for each address or, with all, for each allocation, of which the installed
// policy gives another verdict or reason. Without all, it folds what is beyond the first rows.
func changeTable(c *report.Comparison, all bool) table {
	t := table{heading: []string{"IP", "BACKEND", "POOL", "POD", "INSTALLED POLICY", "THIS POLICY"}, spare: []string{"BACKEND"}}
	if c == nil {
		return t
	}
	for _, change := range c.Changes {
		row := []string{change.Address, change.Backend, change.Pool, podOf(change.Owner)}
		for _, by := range []report.Judged{change.Installed, change.File} {
			row = append(row, lookOf(&report.Entry{Verdict: by.Verdict, Reason: by.Reason, Leaked: by.Leaked}).word+" "+string(by.Reason))
		}
		t.rows = append(t.rows, row)
	}
	if all {
		return t
	}
	t.rows = byAddress(t.rows)
	if rest := len(t.rows) - shownKept; rest > 1 {
		t.rows = t.rows[:shownKept]
		t.fold("and %s", printable.Counted(rest, "other change"))
	}
	return t
}

// poolTable returns one row for each pool, the fullest first. Without all, it folds the pools without a
// finding, and the rest if there are many.
func poolTable(r report.Report, all bool) table {
	released := "RELEASED"
	if r.Run.DryRun {
		released = "TO RELEASE"
	}
	t := table{heading: []string{"POOL", "RANGE", "FULL", "USED", "LEAKED", released, "PROTECTED", "FREE", "CAPACITY"},
		spare: []string{"RANGE", "CAPACITY", "PROTECTED"}}
	shown := fullestFirst(r.Pools)
	var rest []report.PoolReport
	if !all {
		shown, rest = foldPools(shown)
	}
	for _, p := range shown {
		leaked, protected := printable.Thousands(p.Leaked), ""
		if r.Leaked == nil {
			leaked = unknown
		}
		if p.Protected > 0 {
			protected = printable.Thousands(p.Protected)
		}
		t.rows = append(t.rows, []string{
			p.Name, cmp.Or(p.Range, unknown), percent(p.Usage), printable.Thousands(p.Used), leaked, printable.Thousands(freed(p)), protected, number(p.Free), number(p.Capacity),
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

// conclusion returns the report in one sentence.
func conclusion(r report.Report) string {
	s, freed := r.Summary, printable.Counted(r.Freed(), "address")
	refused, allocations := len(r.Result.Refused) > 0, printable.Thousands(s.Entries)+" allocations"
	if r.Run.DryRun {
		part := fmt.Sprintf("(%s of %s)", printable.Thousands(s.Planned), allocations)
		text, written := freed+" "+part+" would be released", ", nothing was written"
		switch {
		case r.Leaked == nil:
			text = "what would be released is unknown"
		case r.Run.NoState:
			return fmt.Sprintf("dry run: %s due %s, and nothing can be released yet", freed, part)
		case refused:
			text = fmt.Sprintf("the plan to free %s %s is refused", freed, part)
		}
		switch {
		case r.Run.Place() == "": // files
			return text
		case r.Run.Remember:
			written = ", no store was written"
		}
		return "dry run: " + text + written
	}
	planned := printable.Thousands(s.Planned) + " due"
	if refused {
		planned += " and refused"
	}
	waiting := ""
	if s.Deleting > 0 {
		waiting = fmt.Sprintf(", %d being deleted", s.Deleting)
	}
	if s.NotBegun > 0 {
		waiting += fmt.Sprintf(", %s not begun", printable.Thousands(s.NotBegun))
	}
	return fmt.Sprintf("released %s (%s of %s; %s, %d changed meanwhile%s, %d failed)",
		freed, printable.Thousands(s.Released), allocations, planned, s.Changed, waiting, s.Failed)
}

// shownPools is the most rows of pools that are shown.
const shownPools = 20

// freed returns how many addresses of a pool the run released or, in a dry run, would release.
func freed(p report.PoolReport) int { return max(p.AllocatedBefore-p.AllocatedAfter, 0) }

// foldPools splits pools into those that are shown and the rest, which is never just one.
func foldPools(pools []report.PoolReport) (shown, rest []report.PoolReport) {
	for _, p := range pools {
		if found := p.Leaked+freed(p) > 0 || p.ProtectedBy != ""; found && len(shown) < shownPools {
			shown = append(shown, p)
		} else {
			rest = append(rest, p)
		}
	}
	if len(rest) == 1 { // a fold of one would be no shorter
		return pools, nil
	}
	return shown, rest
}
