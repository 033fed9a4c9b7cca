package report

import (
	"fmt"
	"iter"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// Tally counts the report's entries, and the allocations in use that have none. It also sets
// the status of the backends whose releases failed.
func (r *Report) Tally(inUse ...*ipam.Allocation) { r.tally(slices.Values(inUse)) }

// tally is Tally.
func (r *Report) tally(left iter.Seq[*ipam.Allocation]) {
	r.count(left)
	gone := make(map[[2]string]int, len(r.Pools))
	unfinished := make(map[string]int)
	for _, e := range r.Entries {
		if e.Outcome == Released || e.Outcome == Planned {
			gone[[2]string{e.Backend, e.Pool}]++
		}
		if e.Outcome == Released && e.Error != "" {
			unfinished[e.Backend]++
		}
	}
	for i := range r.Backends {
		b := &r.Backends[i]
		switch left := unfinished[b.Name]; {
		case b.Status != ipam.StatusOK:
		case b.Failed > 0:
			b.Status, b.Message = ipam.StatusPartial, fmt.Sprintf("failed releases: %d", b.Failed)
		case b.Deleting > 0:
			b.Status, b.Message = ipam.StatusPartial, fmt.Sprintf("deletions that wait for finalizers: %d", b.Deleting)
		case left > 0:
			b.Status, b.Message = ipam.StatusPartial, fmt.Sprintf("unfinished releases: %d", left)
		}
	}
	for i := range r.Pools {
		p := &r.Pools[i]
		p.AllocatedAfter = p.AllocatedBefore - gone[[2]string{p.Backend, p.Name}]
	}
	r.gather(left)
	r.Leaked = leakedOf(*r)
	r.measure(left)
}

// count counts the entries and the allocations in use that have none, together and by
// backend.
func (r *Report) count(left iter.Seq[*ipam.Allocation]) {
	r.Summary = Counts{}
	backends := make(map[string]*Counts, len(r.Backends))
	for i := range r.Backends {
		r.Backends[i].Counts = Counts{}
		backends[r.Backends[i].Name] = &r.Backends[i].Counts
	}
	for i := range r.Entries {
		e := &r.Entries[i]
		r.Summary.add(e)
		backends[e.Backend].add(e)
	}
	inUse := Entry{Verdict: judge.InUse}
	for a := range left {
		r.Summary.add(&inUse)
		backends[a.Backend].add(&inUse)
	}
}

// add counts one entry.
func (c *Counts) add(e *Entry) {
	c.Entries++
	switch e.Verdict {
	case judge.InUse:
		c.InUse++
	case judge.Suspected:
		c.Suspected++
	case judge.Orphaned:
		c.Planned++
	default:
		c.Held++
	}
	switch e.Outcome {
	case Released:
		c.Released++
	case Changed, Returned:
		c.Changed++
	case Deleting:
		c.Deleting++
	case Failed:
		c.Failed++
	case Kept, Planned, Refused:
	}
}

// narrow leaves only the wanted entries in the report, by index, with their pools and
// backends, and with those of the selected allocations in use that have no entry.
func (r *Report) narrow(s judge.Selection, wanted []bool, left iter.Seq[*ipam.Allocation]) {
	some := make([]Entry, 0, len(r.Entries))
	backends, pools := make(map[string]bool), make(map[[2]string]bool)
	for i, e := range r.Entries {
		if wanted[i] {
			some = append(some, e)
			backends[e.Backend], pools[[2]string{e.Backend, e.Pool}] = true, true
		}
	}
	r.Entries = some
	for a := range left {
		backends[a.Backend], pools[[2]string{a.Backend, a.Pool}] = true, true
	}
	r.Pools = slices.DeleteFunc(r.Pools, func(p PoolReport) bool {
		id := [2]string{p.Backend, p.Name}
		pools[id] = pools[id] || !s.ByOwner() && s.MatchesPool(p.Backend, p.Name)
		return !pools[id]
	})
	r.Networks = slices.DeleteFunc(r.Networks, func(n NetworkReport) bool {
		empty := len(n.Pools) == 0 && !s.ByOwner() && s.NamesBackend(n.Backend) && slices.ContainsFunc(s.Pools, n.named)
		return !empty && !slices.ContainsFunc(n.Pools, func(pool string) bool { return pools[[2]string{n.Backend, pool}] })
	})
	r.Backends = slices.DeleteFunc(r.Backends, func(b BackendReport) bool {
		fine := b.Status == ipam.StatusOK || b.Status == ipam.StatusSkipped
		return fine && !backends[b.Name] && !s.NamesBackend(b.Name)
	})
	r.count(left)
	r.Leaked = leakedOf(*r)
}
