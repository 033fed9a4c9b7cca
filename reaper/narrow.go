package reaper

import (
	"errors"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// decided puts the decisions of the current round into the report, and notes which of them
// are selected. It returns those that have an entry.
func (r *run) decided(decisions []judge.Decision) []judge.Decision {
	r.decisions, r.selected, r.left = decisions, r.Selection.Of(decisions), judge.Omitted{}
	if r.Brief {
		r.decisions, r.selected, r.left = judge.Brief(decisions, r.selected)
	}
	r.report.SetEntries(r.decisions)
	return r.decisions
}

// finish counts what the run found. With a selection, the report has the selected entries
// and those that the run wrote. The figures of a pool are those of all of its entries.
func (r *run) finish() {
	wanted := make([]bool, 0, len(r.earlier)+len(r.report.Entries))
	for range r.earlier {
		wanted = append(wanted, true)
	}
	for i, e := range r.report.Entries {
		wanted = append(wanted, r.isSelected(i) || e.Outcome != report.Kept)
	}
	r.report.Resume(r.earlier)
	r.report.Tally(r.left.All())
	if !r.Selection.Everything() {
		r.report.Narrow(r.Selection, wanted, r.left.Selected)
	}
}

// noteUnselected says why the plan leaves selected orphans where they are.
func (r *run) noteUnselected(plan judge.Plan) {
	due := make(map[int]bool, len(plan.Due))
	for _, i := range plan.Due {
		due[i] = true
	}
	for i, d := range plan.Decisions {
		if d.Verdict == judge.Orphaned && plan.Selects(i) && !due[i] {
			r.settle(i, report.Kept, errUnselected)
		}
	}
}

// errUnselected says that an object that protects others stays because one of them stays.
var errUnselected = errors.New("an allocation that it protects is not selected")

// selectedOf returns the decisions that the run reports.
func (r *run) selectedOf(decisions []judge.Decision) []judge.Decision {
	if r.selected == nil {
		return decisions
	}
	var some []judge.Decision
	for i, d := range decisions {
		if r.selected[i] {
			some = append(some, d)
		}
	}
	return some
}

// isSelected reports whether the run reports an entry of the current round, by index.
func (r *run) isSelected(i int) bool { return r.selected == nil || r.selected[i] }
