package reaper

// An Orphan is an allocation that a complete census has no owner for, and whose grace
// period is over. Only MakePlan makes one. It is a suspicion: only Confirm makes a
// permission of it.
type Orphan struct {
	facts      *Facts // by which it was judged
	allocation Allocation
	reason     Reason
	group      []Orphan // all that it is released together with, itself included
}

// Allocation returns the suspected allocation; the zero Allocation for a zero Orphan.
func (o Orphan) Allocation() Allocation { return o.allocation }

// A Plan is what a run is about to release.
type Plan struct {
	decisions []Decision
	due       []int // indices of the orphans among the decisions
	orphans   map[int]Orphan
	before    int // addresses that earlier looks of the same run released
}

// MakePlan collects the orphans among the decisions.
func MakePlan(decisions []Decision) Plan {
	p := Plan{decisions: decisions, orphans: make(map[int]Orphan)}
	groups := make(map[[2]string][]int)
	for i, d := range decisions {
		if d.Verdict != Orphaned {
			continue
		}
		p.due = append(p.due, i)
		p.orphans[i] = Orphan{facts: d.facts, allocation: d.Allocation, reason: d.Reason}
		if d.Allocation.Group != "" {
			key := [2]string{d.Allocation.Backend, d.Allocation.Group}
			groups[key] = append(groups[key], i)
		}
	}
	for _, members := range groups {
		if len(members) < 2 {
			continue
		}
		group := make([]Orphan, len(members))
		for n, i := range members {
			group[n] = p.orphans[i]
		}
		for _, i := range members {
			o := p.orphans[i]
			o.group = group
			p.orphans[i] = o
		}
	}
	return p
}

// after returns the plan as one that follows the release of this many addresses in the
// same run. Limits are those of the run.
func (p Plan) after(released int) Plan {
	p.before = released
	return p
}

// Orphans returns what the plan releases, in the order of the decisions.
func (p Plan) Orphans() []Orphan {
	orphans := make([]Orphan, len(p.due))
	for n, i := range p.due {
		orphans[n] = p.orphans[i]
	}
	return orphans
}

// object returns the object of the API that holds an allocation, by index.
func (p Plan) object(i int) Object {
	d := p.decisions[i]
	return d.facts.pool(&d.Allocation).Object
}

// of returns what the plan releases of a backend, by index.
func (p Plan) of(backend string) []int {
	var due []int
	for _, i := range p.due {
		if p.decisions[i].Allocation.Backend == backend {
			due = append(due, i)
		}
	}
	return due
}

// only returns the plan that releases nothing but these of its allocations.
func (p Plan) only(these map[int]bool) Plan {
	var due []int
	for _, i := range p.due {
		if these[i] {
			due = append(due, i)
		}
	}
	p.due = due
	return p
}

// addresses returns how many addresses the run releases with the plan, and of how many.
// An allocation that holds no address endangers no pod, and is not counted: there may be
// more of these than of all addresses.
func (p Plan) addresses() (planned, all int) {
	planned, all = p.before, p.before
	for _, d := range p.decisions {
		if !d.Allocation.holdsAddress() {
			continue
		}
		all++
		if d.Verdict == Orphaned {
			planned++
		}
	}
	return planned, all
}
