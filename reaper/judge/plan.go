package judge

import (
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// An Orphan is an allocation for which a complete census has no owner, and whose grace
// period is over. Only MakePlan makes one. It is a suspicion, not a permission: that
// is the Warrant.
type Orphan struct {
	decision *Decision
	group    []*Decision // on the orphans of its group, itself included
}

// Allocation returns the suspected allocation, with what the rules knew about it; nil for a zero
// Orphan.
func (o Orphan) Allocation() *ipam.Allocation {
	if o.decision == nil {
		return nil
	}
	return o.decision.Allocation
}

// A Plan has the orphans that a run is about to release.
type Plan struct {
	Decisions []Decision
	Due       []int // the indices of the orphans among the decisions

	groups   map[string][]*Decision // on the orphans of each group
	before   map[string]int         // addresses that earlier rounds of the same run released, by backend
	selected []bool                 // by the same indices; nil if the plan is about all decisions

	inUse   map[string]int // the addresses in use that have no decision here, by backend
	outside []string       // the backends whose stores are outside the API server
}

// MakePlan collects the orphans among the decisions, which must not change any more.
func MakePlan(decisions []Decision) Plan {
	p := Plan{Decisions: decisions, groups: make(map[string][]*Decision)}
	for i := range decisions {
		d := &decisions[i]
		if d.Verdict != Orphaned {
			continue
		}
		p.Due = append(p.Due, i)
		if group := d.Allocation.Group; group != "" {
			p.groups[group] = append(p.groups[group], d)
		}
	}
	return p
}

// After returns the plan of a run that has already released this many addresses, by backend. The
// limits apply to all rounds of a run together.
func (p Plan) After(released map[string]int) Plan {
	p.before = released
	return p
}

// Beside returns the plan of decisions from which these allocations were left out.
func (p Plan) Beside(left Omitted) Plan {
	p.inUse = make(map[string]int)
	for _, a := range left.All() {
		if a.HoldsAddress() {
			p.inUse[a.Backend]++
		}
	}
	return p
}

// In returns the plan of decisions on this inventory.
func (p Plan) In(inv ipam.Inventory) Plan {
	for _, l := range inv.Listings {
		if l.Outside != nil {
			p.outside = append(p.outside, l.Backend)
		}
	}
	return p
}

// Orphans returns the orphans that the plan releases, in the order of the decisions.
func (p Plan) Orphans() []Orphan {
	orphans := make([]Orphan, len(p.Due))
	for n, i := range p.Due {
		orphans[n] = p.Orphan(i)
	}
	return orphans
}

// Orphan returns the orphan of a decision, by index; the zero Orphan if it is none.
func (p Plan) Orphan(i int) Orphan {
	d := &p.Decisions[i]
	if d.Verdict != Orphaned {
		return Orphan{}
	}
	return Orphan{d, p.groups[d.Allocation.Group]}
}

// PoolSize returns how many allocations the pool of a decision has, by index.
func (p Plan) PoolSize(i int) int {
	d := p.Decisions[i]
	return len(d.facts.PoolOf(d.Allocation).Allocations)
}

// Pool returns the name of the pool of a decision, by index.
func (p Plan) Pool(i int) string { return p.Decisions[i].Allocation.Pool }

// Of returns the indices of the orphans of one backend.
func (p Plan) Of(backend string) []int {
	var due []int
	for _, i := range p.Due {
		if p.Decisions[i].Allocation.Backend == backend {
			due = append(due, i)
		}
	}
	return due
}

// Only returns the plan without the orphans that are not in the set.
func (p Plan) Only(set map[int]bool) Plan {
	var due []int
	for _, i := range p.Due {
		if set[i] {
			due = append(due, i)
		}
	}
	p.Due = due
	return p
}

// addresses are how many addresses the run releases by the end of a plan, how many it would
// release without its selection, and how many there are.
type addresses struct{ planned, due, all int }

// addresses counts those of a backend, or of all if it is empty. An allocation that holds no
// address is not counted: it endangers no pod, and there may be more of these than addresses. Nor is
// what another cluster may have: the more that is, the more of this cluster's could be released.
func (p Plan) addresses(of string) addresses {
	n := addresses{}
	for backend, released := range p.before {
		if of == "" || of == backend {
			n.planned, n.due, n.all = n.planned+released, n.due+released, n.all+released
		}
	}
	for backend, inUse := range p.inUse {
		if of == "" || of == backend {
			n.all += inUse
		}
	}
	for i, d := range p.Decisions {
		if !d.Allocation.HoldsAddress() || of != "" && of != d.Allocation.Backend || d.Reason == NodeForeign {
			continue
		}
		n.all++
		if d.Verdict == Orphaned {
			n.due++
			if p.Selects(i) {
				n.planned++
			}
		}
	}
	return n
}

// An Omitted has the allocations that are in use and have no entry in the report, because there
// is nothing to say about them. The report counts them.
type Omitted struct {
	Selected []*ipam.Allocation
	Others   []*ipam.Allocation // the selection leaves them out
}

// All returns all of them.
func (c Omitted) All() []*ipam.Allocation { return slices.Concat(c.Selected, c.Others) }

// Brief returns the decisions that get an entry, and which of them are selected; nil if
// all are. A release may wait for one of them, or mend it, so these stay.
func Brief(decisions []Decision, selected []bool) ([]Decision, []bool, Omitted) {
	var left Omitted
	first := make(map[int]int) // the new indices of those that others come after
	for i := range decisions {
		for _, before := range decisions[i].After {
			first[before] = 0
		}
	}
	var kept []Decision
	var keptSelected []bool
	if selected != nil {
		keptSelected = []bool{}
	}
	for i := range decisions {
		d := &decisions[i]
		_, awaited := first[i]
		if d.plain() && !awaited && !d.Allocation.Interrupted {
			if selected == nil || selected[i] {
				left.Selected = append(left.Selected, d.Allocation)
			} else {
				left.Others = append(left.Others, d.Allocation)
			}
			continue
		}
		if awaited {
			first[i] = len(kept)
		}
		kept = append(kept, *d)
		if selected != nil {
			keptSelected = append(keptSelected, selected[i])
		}
	}
	for i := range kept {
		if len(kept[i].After) == 0 {
			continue
		}
		d := kept[i].Revised()
		d.After = make([]int, len(kept[i].After))
		for n, before := range kept[i].After {
			d.After[n] = first[before]
		}
		kept[i] = d
	}
	return kept, keptSelected, left
}
