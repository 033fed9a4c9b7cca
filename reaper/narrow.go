package reaper

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// decided puts the decisions of the current round into the report, and notes which of them
// are selected. It returns those that have an entry.
func (r *run) decided(decisions []Decision) []Decision {
	r.decisions, r.selected, r.left = decisions, r.Selection.of(decisions), omitted{}
	if r.Brief {
		r.decisions, r.selected, r.left = brief(decisions, r.selected)
	}
	r.report.setEntries(r.decisions)
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
		wanted = append(wanted, r.isSelected(i) || e.Outcome != Kept)
	}
	r.report.resume(r.earlier)
	r.report.tally(r.left.all())
	if !r.Selection.Everything() {
		r.report.narrow(r.Selection, wanted, r.left.selected)
	}
}

// narrow leaves the wanted entries in the report, by index, with their pools and backends,
// and with those of the selected allocations in use that have no entry.
func (r *Report) narrow(s Selection, wanted []bool, left []*Allocation) {
	some := make([]Entry, 0, len(r.Entries))
	backends, pools := make(map[string]bool), make(map[[2]string]bool)
	for i, e := range r.Entries {
		if wanted[i] {
			some = append(some, e)
			backends[e.Backend], pools[[2]string{e.Backend, e.Pool}] = true, true
		}
	}
	r.Entries = some
	for _, a := range left {
		backends[a.Backend], pools[[2]string{a.Backend, a.Pool}] = true, true
	}
	r.Pools = slices.DeleteFunc(r.Pools, func(p PoolReport) bool {
		id := [2]string{p.Backend, p.Name}
		pools[id] = pools[id] || !s.byOwner() && s.matchesPool(p.Backend, p.Name)
		return !pools[id]
	})
	r.Networks = slices.DeleteFunc(r.Networks, func(n NetworkReport) bool {
		return !slices.ContainsFunc(n.Pools, func(pool string) bool { return pools[[2]string{n.Backend, pool}] })
	})
	r.Backends = slices.DeleteFunc(r.Backends, func(b BackendReport) bool {
		fine := b.Status == StatusOK || b.Status == StatusSkipped
		return fine && !backends[b.Name] && !anyOf(s.Backends, b.Name)
	})
	r.count(left)
	r.Leaked = leakedOf(*r)
}

// seekOnce is seek for the first round. What it releases may be the last of a pool.
func (r *run) seekOnce(inv Inventory, c Census, decisions []Decision) error {
	if r.sought || r.Selection.Everything() {
		return nil
	}
	r.sought = true
	return r.seek(inv, c, decisions)
}

// noteUnselected says why the plan leaves selected orphans where they are.
func (r *run) noteUnselected(plan Plan) {
	due := make(map[int]bool, len(plan.due))
	for _, i := range plan.due {
		due[i] = true
	}
	for i, d := range plan.decisions {
		if d.Verdict == Orphaned && plan.selects(i) && !due[i] {
			r.settle(i, Kept, errUnselected)
		}
	}
}

// seek warns of each name of the selection that the run did not find. It returns an error
// if a pool or a node cannot be: a mistake in a name must not read as "nothing leaked".
//
// A namespace or a pod may have had its last allocation. A pool of a store that was not
// listed may exist, and so may a node if the nodes were not.
func (r *run) seek(inv Inventory, c Census, decisions []Decision) error {
	s, known := r.Selection, make(map[string]bool)
	for i := range decisions {
		owner := &decisions[i].completed().Owner
		known["namespace "+owner.Pod.Namespace], known["pod "+owner.Pod.String()], known["node "+owner.Node] = true, true, true
	}
	for _, pod := range c.listed.pods {
		known["namespace "+pod.Ref.Namespace], known["pod "+pod.Ref.String()] = true, true
	}
	for name := range c.nodes {
		known["node "+name] = true
	}
	for _, l := range inv.Listings {
		for _, pool := range l.Pools {
			known["pool "+pool.Name], known["pool "+shortPool(pool.Name)] = true, true
		}
		known["backend "+l.Backend] = true
		if slices.Contains(s.Backends, l.Backend) && l.Status == StatusSkipped {
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
	sought("node", s.Nodes, inv.complete() && len(c.nodes) > 0)
	sought("backend", s.Backends, false)
	sought("pool", s.Pools, inv.complete())
	if len(wrong) == 0 {
		return nil
	}
	return BadInput(fmt.Errorf("the selection names what does not exist: %s", strings.Join(wrong, ", ")),
		"nothing was released; a run without a selection lists all pools and nodes")
}

// errUnselected says that an object that protects others stays, because one of these does.
var errUnselected = errors.New("an allocation that it protects is not selected")
