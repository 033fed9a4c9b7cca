package judge

import (
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

// PlanOf returns the plan of a round: its verdicts on an inventory, and how many addresses earlier
// rounds of the same run have released, by backend. The limits apply to all of them together.
func PlanOf(v Verdicts, inv ipam.Inventory, released map[string]int) Plan {
	p := MakePlan(v.Decisions)
	p.before = released
	p.inUse = make(map[string]int)
	for _, l := range v.InUse {
		if l.HoldsAddress() {
			p.inUse[l.Backend]++
		}
	}
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
