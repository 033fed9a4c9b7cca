package report

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// A tally makes the figures of a report in one pass over its allocations. It takes each allocation
// once, and then goes over the places: an IP counts once in each network of the report, and a place
// has one fate.
type tally struct {
	*Report
	findings *Findings
	wanted   []bool // by the entries
	backends map[string]*BackendReport
	pools    []poolTally // those of the report, and then one for all other pools of each network
	indexOf  map[ipam.PoolRef]int32
	networks []networkTally
	holdings []holding
	inUse    Entry // stands for what has none
}

// A poolTally counts what a pool has.
type poolTally struct {
	filling
	network *networkTally // nil if the report has none for it
	unique  string        // the network in which its addresses are unique: see ipam.Allocation
	wanted  bool          // the report is about something in it
	before  int           // what earlier rounds released
	gone    int           // what the run released, or would release
}

// A networkTally counts what a network has.
type networkTally struct {
	filling
	*NetworkReport
	fate Fate // of the IP that is being counted
}

// A holding is an allocation that has an address. There may be very many.
type holding struct {
	ip    netip.Addr
	pool  int32
	entry int32 // noEntry if it is in use and has none
}

const noEntry = -1

// newTally returns a tally of nothing.
func newTally(r *Report, f *Findings) *tally {
	t := &tally{
		Report: r, findings: f, backends: make(map[string]*BackendReport), inUse: Entry{Verdict: judge.InUse},
		pools: make([]poolTally, len(r.Pools)), indexOf: make(map[ipam.PoolRef]int32), networks: make([]networkTally, len(r.Networks)),
		holdings: make([]holding, 0, len(f.Earlier)+len(f.Verdicts.Decisions)+len(f.Verdicts.InUse)),
	}
	for i := range r.Backends {
		t.backends[r.Backends[i].Name] = &r.Backends[i]
	}
	for i, p := range r.Pools {
		t.indexOf[p.ref()] = int32(i)
	}
	for i := range r.Networks {
		t.networks[i] = networkTally{NetworkReport: &r.Networks[i], fate: Freed}
		for ref := range r.Networks[i].refs() {
			if p, ok := t.indexOf[ref]; ok {
				t.pools[p].network = &t.networks[i]
			}
		}
	}
	return t
}

// add adds an entry. What is not wanted counts for its pool and its place alone.
func (t *tally) add(e Entry, wanted bool) {
	ip, _ := netip.ParseAddr(e.IP) // not valid if it has none
	pool := t.hold(e.pool(), e.Network, ip, len(t.Entries))
	if len(t.Entries) < len(t.findings.Earlier) {
		pool.before++
	}
	if e.Outcome == Released || e.Outcome == Planned {
		pool.gone++
	}
	if wanted {
		t.count(pool, e.Backend, e.Verdict, e.Outcome)
	}
	t.Entries = append(t.Entries, e)
	t.wanted = append(t.wanted, wanted)
}

// addInUse adds an allocation in use that gets no entry.
func (t *tally) addInUse(a *ipam.Allocation, wanted bool) {
	pool := t.hold(ipam.PoolRef{Backend: a.Backend, Name: a.Pool}, a.Network, a.IP, noEntry)
	if wanted {
		t.count(pool, a.Backend, judge.InUse, Kept)
	}
}

// hold takes an address, if there is one, for the pass over places. It returns the pool.
func (t *tally) hold(ref ipam.PoolRef, network string, ip netip.Addr, entry int) *poolTally {
	i, ok := t.indexOf[ref]
	if !ok {
		rest := ipam.PoolRef{Name: network} // no backend has an empty name
		if i, ok = t.indexOf[rest]; !ok {
			i = int32(len(t.pools))
			t.indexOf[rest] = i
			t.pools = append(t.pools, poolTally{})
		}
	}
	t.pools[i].unique = network
	if ip.IsValid() {
		t.holdings = append(t.holdings, holding{ip, i, int32(entry)})
	}
	return &t.pools[i]
}

// count counts an allocation that the report is about.
func (t *tally) count(pool *poolTally, backend string, v judge.Verdict, o Outcome) {
	pool.wanted = true
	t.Summary.add(v, o)
	t.backends[backend].add(v, o)
}

// finish fills in the figures of the report. With a selection, it leaves only what that is about in it.
func (t *tally) finish() {
	slices.SortFunc(t.holdings, t.compare)
	for same := range runs(t.holdings, func(a, b holding) bool { return a.ip == b.ip }) {
		t.fill(same)
		for place := range runs(same, func(a, b holding) bool { return t.pools[a.pool].unique == t.pools[b.pool].unique }) {
			t.decide(place)
		}
	}
	for i := range t.Pools {
		p, pool := &t.Pools[i], &t.pools[i]
		p.AllocatedBefore += pool.before
		p.AllocatedAfter = p.AllocatedBefore - pool.gone
		p.ProtectedBy = t.findings.ProtectedBy[p.ref()]
		p.Usage = pool.usage(p.Capacity, pool.network != nil && pool.network.Closed != "")
	}
	for i := range t.networks {
		n := &t.networks[i]
		if n.Usage = n.usage(n.Capacity, n.Closed != ""); n.Partial {
			n.Free = nil
		}
	}
	t.setStatus()
	if s := t.findings.Selection; !s.Everything() {
		t.narrow(s)
	}
	t.Leaked = leakedOf(*t.Report)
}

// compare orders holdings by IP, then by place, and then as the report has their entries.
func (t *tally) compare(a, b holding) int {
	if order := a.ip.Compare(b.ip); order != 0 {
		return order
	}
	return cmp.Or(cmp.Compare(t.pools[a.pool].unique, t.pools[b.pool].unique), cmp.Compare(a.entry, b.entry))
}

// runs yields the parts of a sorted slice whose elements are the same.
func runs[E any](sorted []E, same func(a, b E) bool) iter.Seq[[]E] {
	return func(yield func([]E) bool) {
		for len(sorted) > 0 {
			n := 1
			for n < len(sorted) && same(sorted[0], sorted[n]) {
				n++
			}
			if !yield(sorted[:n]) {
				return
			}
			sorted = sorted[n:]
		}
	}
}

// entry returns the entry of a holding.
func (t *tally) entry(h holding) *Entry {
	if h.entry == noEntry {
		return &t.inUse
	}
	return &t.Entries[h.entry]
}

// fill counts an IP in each pool that has it, and once in each network: two of its pools may have it.
func (t *tally) fill(same []holding) {
	for _, h := range same {
		pool, fate := &t.pools[h.pool], fateOf(t.entry(h))
		n := pool.network
		pool.add(fate, n == nil || n.gives(h.ip))
		if n != nil {
			n.fate = min(n.fate, fate)
		}
	}
	for _, h := range same {
		if n := t.pools[h.pool].network; n != nil && n.fate != Freed {
			n.add(n.fate, n.gives(h.ip))
			n.fate = Freed
		}
	}
}

// decide gives the entries of a place that leaked their Address. What an earlier round freed may be
// in use again, by another pod, but was freed nevertheless.
func (t *tally) decide(place []holding) {
	leaked, listed := false, false
	for _, h := range place {
		if fateOf(t.entry(h)) >= Protected {
			leaked = true
			listed = listed || int(h.entry) >= len(t.findings.Earlier)
		}
	}
	if !leaked {
		return
	}
	a := &Address{Fate: Freed, Planned: true}
	for _, h := range place {
		e := t.entry(h)
		if fateOf(e) >= Protected {
			e.Address = a
		}
		if listed || e.Verdict != judge.InUse {
			a.take(e)
		}
	}
}

// setStatus sets the status of the backends whose releases failed, or were not finished.
func (t *tally) setStatus() {
	unfinished := make(map[string]int)
	for i := range t.Entries {
		if e := &t.Entries[i]; e.Outcome == Released && e.Error != "" {
			unfinished[e.Backend]++
		}
	}
	for i := range t.Backends {
		b := &t.Backends[i]
		for _, missing := range []struct {
			what  string
			count int
		}{{"failed releases", b.Failed}, {"deletions that wait for finalizers", b.Deleting}, {"unfinished releases", unfinished[b.Name]}} {
			if missing.count > 0 && b.Status == ipam.StatusOK {
				b.Status = ipam.StatusPartial
				b.Message = fmt.Sprintf("%s: %d", missing.what, missing.count)
			}
		}
	}
}

// narrow leaves only what the report is about: the wanted entries, their pools and backends, and
// those that the selection names.
func (t *tally) narrow(s judge.Selection) {
	some := make([]Entry, 0, len(t.Entries))
	for i := range t.Entries {
		if t.wanted[i] {
			some = append(some, t.Entries[i])
		}
	}
	t.Entries = some
	wanted := make(map[ipam.PoolRef]bool)
	for i, p := range t.Pools {
		wanted[p.ref()] = t.pools[i].wanted || !s.ByOwner() && s.MatchesPool(p.Backend, p.Name)
	}
	t.Pools = slices.DeleteFunc(t.Pools, func(p PoolReport) bool { return !wanted[p.ref()] })
	t.Networks = slices.DeleteFunc(t.Networks, func(n NetworkReport) bool {
		named := len(n.Pools) == 0 && !s.ByOwner() && s.NamesBackend(n.Backend) && slices.ContainsFunc(s.Pools, n.named)
		for ref := range n.refs() {
			named = named || wanted[ref]
		}
		return !named
	})
	t.Backends = slices.DeleteFunc(t.Backends, func(b BackendReport) bool {
		fine := b.Status == ipam.StatusOK || b.Status == ipam.StatusSkipped
		return fine && b.Entries == 0 && !s.NamesBackend(b.Name)
	})
}
