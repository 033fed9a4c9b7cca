package report

import (
	"fmt"
	"math/big"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// A tally makes the figures of a report in one pass over its allocations. It takes each allocation
// once, and then goes over the addresses: an IP counts once in each network of the report, and an address
// has one fate.
type tally struct {
	*Report
	results  *Results
	wanted   []bool // by the entries
	backends map[string]*BackendReport
	pools    []poolTally // those of the report, and then one for all other pools of each network
	indexOf  map[ipam.PoolRef]int32
	networks []networkTally
	holdings []holding
	parts    []part // of the address that is being counted
	inUse    Entry  // stands for what has none
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
	parts  []filling    // those of the report
	prefix netip.Prefix // not valid if the network has none
	fate   Fate         // of the IP that is being counted
}

// A holding is an allocation that has an address. There may be very many.
type holding struct {
	ip    netip.Addr
	pool  int32
	entry int32 // noEntry if it is in use and has none
}

const noEntry = -1

// newTally returns a tally of nothing.
func newTally(r *Report, f *Results) *tally {
	t := &tally{
		Report: r, results: f, backends: make(map[string]*BackendReport), inUse: Entry{Verdict: judge.InUse},
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
		prefix, _ := netip.ParsePrefix(r.Networks[i].Range)
		t.networks[i] = networkTally{
			NetworkReport: &r.Networks[i],
			parts:         make([]filling, len(r.Networks[i].Parts)),
			prefix:        shownPrefix(prefix),
		}
		for ref := range r.Networks[i].refs() {
			if p, ok := t.indexOf[ref]; ok {
				t.pools[p].network = &t.networks[i]
			}
		}
	}
	return t
}

// add adds an entry. What is not wanted counts for its pool and its address alone.
func (t *tally) add(e Entry, wanted bool) {
	ip, _ := netip.ParseAddr(e.IP) // not valid if it has none
	pool := t.record(e.pool(), e.Network, ip, len(t.Entries))
	if len(t.Entries) < len(t.results.Earlier) {
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
	pool := t.record(ipam.PoolRef{Backend: a.Backend, Name: a.Pool}, a.Network, a.IP, noEntry)
	if wanted {
		t.count(pool, a.Backend, judge.InUse, Kept)
	}
}

// record notes that the pool has an address, if there is one. It returns the pool.
func (t *tally) record(ref ipam.PoolRef, network string, ip netip.Addr, entry int) *poolTally {
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
func (t *tally) count(pool *poolTally, backend string, v judge.Verdict, o Fate) {
	pool.wanted = true
	t.Summary.add(v, o)
	t.backends[backend].add(v, o)
}

// finish fills in the figures of the report. With a selection, it leaves only what that is about in it.
func (t *tally) finish() {
	addressOf := func(h holding) ipam.Address { return ipam.Address{Network: t.pools[h.pool].unique, IP: h.ip} }
	for address := range ipam.Addresses(t.holdings, addressOf) {
		t.fill(address)
		t.decide(address)
		t.block(address)
	}
	for _, f := range t.results.Found {
		t.addUnrecorded(f)
	}
	for i := range t.Pools {
		p, pool := &t.Pools[i], &t.pools[i]
		p.AllocatedBefore += pool.before
		p.AllocatedAfter = p.AllocatedBefore - pool.gone
		p.ProtectedBy = t.results.ProtectedBy[p.ref()]
		p.Usage = pool.usage(p.Capacity, p.Closed != "")
		if pool.network != nil && pool.network.Foreign {
			p.Free, p.FullPercent = nil, nil
		}
	}
	for i := range t.networks {
		n := t.networks[i].NetworkReport
		n.Usage = t.networks[i].usage(n.Capacity, n.Closed != "")
		if n.Partial || n.Foreign {
			n.Free, n.FullPercent = nil, nil
		}
		for k := range n.Parts {
			p := &n.Parts[k]
			if p.Usage = t.networks[i].parts[k].usage(p.usable.Count(), n.Closed != ""); n.Free == nil {
				p.Free, p.FullPercent = nil, nil
			}
		}
	}
	living := t.results.Living
	t.countBlocks(t.results.Nodes, func(node string) bool { return living != nil && living.Node(node).Windows })
	t.setStatus()
	if s := t.results.Selection; !s.Everything() {
		t.narrow(s)
	}
	t.Leaked = leakedOf(*t.Report)
}

// entry returns the entry of a holding.
func (t *tally) entry(h holding) *Entry {
	if h.entry == noEntry {
		return &t.inUse
	}
	return &t.Entries[h.entry]
}

// fill counts an address in each pool that has it, and once in each network: two of its pools may have it.
func (t *tally) fill(address []holding) {
	for _, h := range address {
		pool, fate := &t.pools[h.pool], t.entry(h).Fate()
		n := pool.network
		pool.add(fate, n == nil || n.handsOut(h.ip))
		if n != nil {
			n.fate = max(n.fate, fate)
		}
	}
	for _, h := range address {
		if n := t.pools[h.pool].network; n != nil && n.fate != Unknown {
			n.add(n.fate, n.handsOut(h.ip))
			n.inParts(h.ip, func(f *filling) { f.add(n.fate, true) })
			n.fate = Unknown
		}
	}
}

// block counts an address that an allocation of no pool has, such as an overlapping-range
// reservation, in each network none of whose pools has it: these cannot give the address out.
func (t *tally) block(address []holding) {
	stays := func(in *networkTally) bool {
		return slices.ContainsFunc(address, func(h holding) bool { return t.pools[h.pool].network == in && t.entry(h).Fate() != Released })
	}
	unique := t.pools[address[0].pool].unique
	if unique == "" || !stays(nil) {
		return
	}
	for i := range t.networks {
		if n := &t.networks[i]; n.Unique == unique && n.prefix.Contains(address[0].ip) && n.handsOut(address[0].ip) && !stays(n) {
			n.filling.Blocked++
			n.inParts(address[0].ip, func(f *filling) { f.Blocked++ })
			t.poolsOf(n, address[0].ip, func(f *filling) { f.Blocked++ })
		}
	}
}

// inParts calls a function with what counts the parts of the network that have an IP.
func (n *networkTally) inParts(ip netip.Addr, do func(*filling)) {
	for i := range n.parts {
		if n.Parts[i].usable.Contains(ip) {
			do(&n.parts[i])
		}
	}
}

// addUnrecorded counts an address that a pod shows and no store has.
func (t *tally) addUnrecorded(f Finding) {
	ip, err := netip.ParseAddr(f.IP)
	for i := range t.networks {
		n := &t.networks[i]
		if err == nil && !f.Recorded && n.Backend == f.Backend && n.Name == f.Network && n.handsOut(ip) {
			n.filling.Unrecorded++
			n.inParts(ip, func(f *filling) { f.Unrecorded++ })
			t.poolsOf(n, ip, func(f *filling) { f.Unrecorded++ })
		}
	}
}

// poolsOf calls a function with the pools of a network whose range has an IP.
func (t *tally) poolsOf(n *networkTally, ip netip.Addr, do func(*filling)) {
	for ref := range n.refs() {
		i, ok := t.indexOf[ref]
		if !ok {
			continue
		}
		if prefix, err := netip.ParsePrefix(t.Pools[i].Range); err == nil && shownPrefix(prefix).Contains(ip) {
			do(&t.pools[i].filling)
		}
	}
}

// decide gives the entries that leaked an address, or may have, their Address.
func (t *tally) decide(address []holding) {
	t.parts = t.parts[:0]
	for _, h := range address {
		e := t.entry(h)
		t.parts = append(t.parts, part{
			fate:    e.Fate(),
			reason:  e.Reason,
			inUse:   e.Verdict == judge.InUse,
			earlier: h.entry != noEntry && int(h.entry) < len(t.results.Earlier),
		})
	}
	folded := fold(t.parts)
	if folded.Fate == Unknown {
		return
	}
	a := new(folded) // of very many, few get here
	for i, h := range address {
		if t.parts[i].tells() {
			t.entry(h).Address = a
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
	wanted, typed := make(map[ipam.PoolRef]bool), make(map[[2]string]bool)
	for _, name := range s.Pools {
		for _, n := range t.networksNamed(name) {
			typed[[2]string{n.Backend, n.Name}] = true
		}
	}
	for i, p := range t.Pools {
		wanted[p.ref()] = t.pools[i].wanted || !s.ByOwner() && s.MatchesPool(p.Backend, p.Name)
	}
	t.Pools = slices.DeleteFunc(t.Pools, func(p PoolReport) bool { return !wanted[p.ref()] })
	t.Networks = slices.DeleteFunc(t.Networks, func(n NetworkReport) bool {
		named := len(n.Pools) == 0 && !s.ByOwner() && s.NamesBackend(n.Backend) && typed[[2]string{n.Backend, n.Name}]
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

// Usage says how many addresses of a pool or of a network are taken after the run, and by
// what. Changes by other clients are not in it. Used is the sum of Live, Leaked and Other.
type Usage struct {
	// Capacity is how many addresses the store gives to pods, taken or not: without
	// those that are excluded, reserved, or outside the range that is handed out. It is
	// null if unknown.
	Capacity *big.Int `json:"capacity"`

	Used      int `json:"used"`
	Live      int `json:"live"`      // in use
	ByName    int `json:"byName"`    // of Live: in use only because a pod exists that shows other addresses
	Leaked    int `json:"leaked"`    // without an owner
	Protected int `json:"protected"` // of Leaked: something outside keeps the address
	Other     int `json:"other"`     // what is not a pod's, or could not be decided

	// Blocked and Unrecorded count addresses that no pool of the network has, and that are not free
	// either: what an overlapping-range reservation holds, and what a pod shows and no store has.
	Blocked    int `json:"blocked"`
	Unrecorded int `json:"unrecorded"`

	// Free is how many addresses pods can still get: 0 if the network is closed, and
	// null if that is unknown.
	Free *big.Int `json:"free"`

	// FullPercent is which part of Capacity is not free, in percent and rounded down: 100 only if
	// nothing is. It is null if that is unknown, or if the network is closed.
	FullPercent *int `json:"fullPercent"`
}

// A NetworkReport says how full one network is: the addresses that pods get from one
// Calico IPPool, or from one range of Whereabouts. Its pools may hold only a part of them.
type NetworkReport struct {
	Backend string `json:"backend"`
	Name    string `json:"name"`
	Range   string `json:"range"`
	Usage

	// Pools are the names of the report's pools that are in the network.
	Pools []string `json:"pools"`

	// Closed says why the network hands out no addresses, such as "disabled"; empty if
	// it does.
	Closed string `json:"closed,omitempty"`

	// Partial is set if a pool of the backend could not be read, or is too large and of this IP family. The pool may be of the
	// network, so the network may have fewer free addresses: Free is null.
	Partial bool `json:"partial,omitempty"`

	// Blocks says how nodes share the network; nil if its addresses are for all of them, or for none.
	Blocks *Blocks `json:"blocks,omitempty"`

	// Attachments and Default say which pods get addresses of it: see ipam.Network.
	Attachments []string `json:"attachments,omitempty"`
	Default     bool     `json:"-"`
	Unique      string   `json:"-"` // see ipam.Network

	// Usable are the addresses that Capacity counts; none if that is unknown.
	Usable ipam.Spans `json:"-"`

	// Withheld says why some addresses are not Usable: see ipam.Network.
	Withheld []ipam.Withheld `json:"-"`

	// Parts are what the attachments hand out, if some do not hand out all of it.
	Parts []AttachedPart `json:"parts,omitempty"`

	// Foreign is set if pods show addresses of the range, and the store has none of these: another IPAM
	// gives them, or the records were lost. Then Free is null.
	Foreign bool `json:"foreign,omitempty"`

	// By and Manual say which pods get none: see ipam.Network.
	By     string `json:"by,omitempty"`
	Manual bool   `json:"manual,omitempty"`

	Division *ipam.Division `json:"-"`
}

// handsOut reports whether pods can get the address. They may if that is unknown.
func (n NetworkReport) handsOut(ip netip.Addr) bool {
	return n.Capacity == nil || n.Usable.Contains(ip)
}

// withheld says why no pod gets an address of the network unless it asks for it; empty if one may, or if the
// address is outside of what the network hands out.
func (n NetworkReport) withheld(ip netip.Addr) string {
	if n.Capacity == nil {
		return "whether pods get it is not known"
	}
	for _, w := range n.Withheld {
		if !n.Usable.Contains(ip) && w.Addresses.Contains(ip) {
			return w.Why
		}
	}
	return ""
}

// withheldBy says what keeps addresses of the network from pods.
func (n NetworkReport) withheldBy() []string {
	var all []string
	for _, w := range n.Withheld {
		if len(w.Addresses.Without(n.Usable)) > 0 && !slices.Contains(all, w.Why) {
			all = append(all, w.Why)
		}
	}
	return all
}

// A filling counts the addresses of a pool or of a network.
type filling struct {
	Usage
	inside int // those that pods can get, and that are not free
}

// add counts one address.
func (f *filling) add(fate Fate, inside bool) {
	if inside && fate != Released {
		f.inside++
	}
	switch status := fate.Status(); {
	case status == InUse:
		f.Live++
	case fate.Leaked() && status != Released:
		f.Leaked++
	case status != Released:
		f.Other++
	}
	if fate == ByName {
		f.ByName++
	}
	if fate == Protected {
		f.Protected++
	}
}

// usage returns the figures. An address that no pod gets any more, such as one that was
// excluded later, can still be taken; it does not make fewer addresses free.
func (f *filling) usage(capacity *big.Int, closed bool) Usage {
	u := f.Usage
	u.Capacity = capacity
	u.Used = u.Live + u.Leaked + u.Other
	switch {
	case closed:
		u.Free = new(big.Int)
	case capacity != nil:
		u.Free = new(big.Int).Sub(capacity, big.NewInt(int64(f.inside+f.Blocked+f.Unrecorded)))
		if u.Free.Sign() < 0 {
			u.Free.SetInt64(0)
		}
		u.FullPercent = fullPercent(capacity, u.Free)
	}
	return u
}

// fullPercent returns Usage.FullPercent. What has no addresses is full.
func fullPercent(capacity, free *big.Int) *int {
	full := 100
	if free.Sign() > 0 {
		taken := new(big.Int).Sub(capacity, free)
		full = int(taken.Mul(taken, big.NewInt(100)).Div(taken, capacity).Int64())
	}
	return &full
}
