package reaper

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
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

// seek warns of each name of the selection that the run did not find. It returns an error
// if a pool or a node cannot be: a mistake in a name must not read as "nothing leaked".
//
// A namespace or a pod may have had its last allocation. A pool of a store that was not
// listed may exist, and so may a node if the nodes were not. Only the first round seeks: what it
// releases may be the last of a pool.
func (r *run) seek(inv ipam.Inventory, c census.Census, decisions []judge.Decision) error {
	s, known := r.Selection, make(map[string]bool)
	if r.sought || s.Everything() {
		return nil
	}
	r.sought = true
	for i := range decisions {
		owner := &decisions[i].Completed().Owner
		known["namespace "+owner.Pod.Namespace], known["pod "+owner.Pod.String()], known["node "+owner.Node] = true, true, true
	}
	for _, pod := range c.Pods() {
		known["namespace "+pod.Ref.Namespace], known["pod "+pod.Ref.String()] = true, true
	}
	for name := range c.Nodes() {
		known["node "+name] = true
	}
	for _, l := range inv.Listings {
		for _, pool := range l.Pools {
			known["pool "+pool.Name], known["pool "+judge.ShortPool(pool.Name)] = true, true
		}
		known["backend "+l.Backend] = true
		if slices.Contains(s.Backends, l.Backend) && l.Status == ipam.StatusSkipped {
			r.warn("the selected backend " + l.Backend + " was not listed: " + l.Message)
		}
	}
	var wrong []string
	sought := func(kind string, names []string, mistaken bool) {
		for _, name := range names {
			switch what := kind + " " + name; {
			case known[what]:
			case mistaken:
				wrong = append(wrong, what)
			default:
				r.warn("nothing was found of the selected " + what)
			}
		}
	}
	sought("namespace", s.Namespaces, false)
	sought("pod", s.Pods, false)
	sought("node", s.Nodes, inv.Complete() && c.HasNodes())
	sought("backend", s.Backends, false)
	sought("pool", s.Pools, inv.Complete())
	if len(wrong) == 0 {
		return nil
	}
	return ipam.BadInput(fmt.Errorf("the selection names what does not exist: %s", strings.Join(wrong, ", ")),
		"nothing was released; a run without a selection lists all pools and nodes")
}

// errUnselected says that an object that protects others stays, because one of these does.
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
