package judge

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// An Orphan is an allocation for which a complete census has no owner, and whose grace
// period is over. Only a Plan makes one. It is a suspicion, not a permission: that
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
	Due       []int // the indices of the orphans among the decisions, as far as they are selected

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

// A LimitError refuses a plan: the plan is over a limit, or its census is not believed.
// No part of the plan was released.
type LimitError struct {
	Refusals []Refusal // each limit that refuses it

	// Released is how many allocations earlier rounds of the same run released.
	Released int
}

// Error names every limit with its figures, and the number of releases so far.
func (e *LimitError) Error() string {
	var messages []string
	for _, refusal := range e.Refusals {
		messages = append(messages, refusal.Message)
	}
	return strings.Join(append(messages, Released(e.Released)), "; ")
}

// Released says how many releases a run that ends for a refusal made before, in earlier rounds.
func Released(before int) string {
	if before == 0 {
		return "nothing was released"
	}
	return fmt.Sprintf("%d were released before, and nothing since", before)
}

// Check returns each limit that the plan is over.
//
// limits.maxFraction counts everything that is due, whatever the selection: if most allocations
// have no owner, the pods may be those of another cluster, and then no part of the plan is right.
// So a plan that is refused as a whole is refused in each part. For a store outside the API server,
// it also holds for that store by itself: it may be that of another cluster, whatever the others
// are.
//
// Check also refuses a plan whose census is empty. An API server that answers for another
// cluster, or from an empty store, looks like that, and so does the socket of another
// container runtime.
func (p Plan) Check(limits policy.Limits, c census.Census) []Refusal {
	if len(p.Due) == 0 {
		return nil
	}
	total := p.addresses("")
	var refusals []Refusal
	refuse := func(limit string, n addresses, releases int, of, allowed, advice string) {
		plan := "the plan would release"
		if releases > n.planned {
			plan = "without the selection, the plan would release"
		}
		message := fmt.Sprintf("%s %d of %d allocations%s", plan, releases, n.all, of)
		if allowed != "" {
			message += ", more than the allowed " + allowed
		}
		refusals = append(refusals, refusal(limit, message, advice))
	}
	const raise = "review the plan; if it is right, raise %s or"
	if c.IsEmpty() {
		words := c.Words()
		refuse(words.Empty, total, total.planned, "", "", "check that "+words.Source+" is "+words.Right+"; if it is,")
	}
	if most := *limits.MaxReleases; most > 0 && total.planned > most {
		refuse("limits.maxReleases", total, total.planned, "", fmt.Sprint(most), fmt.Sprintf(raise, "limits.maxReleases"))
	}
	checkFraction := func(n addresses, of string) bool {
		over := n.all >= *limits.MinEntries && float64(n.due) > *limits.MaxFraction*float64(n.all)
		if over {
			refuse("limits.maxFraction", n, n.due, of, percent(*limits.MaxFraction), fmt.Sprintf(raise, "limits.maxFraction"))
		}
		return over
	}
	if checkFraction(total, "") {
		return refusals
	}
	for _, backend := range p.outside {
		checkFraction(p.addresses(backend), " of "+backend)
	}
	return refusals
}

// fewNodes is how many nodes the last run must have found before a drop counts. Of two
// nodes, one may well be missing because it is being replaced.
const fewNodes = 3

// leastDoubt is the shortest time that a drop is doubted, under any policy.
const leastDoubt = 30 * time.Second

// Believe compares the census with that of the last run. If any allocation is ownerless,
// it returns a refusal for each list from which so much vanished that it may be
// incomplete. Finished pods do not count. It believes a drop that an earlier run saw too,
// at least a grace period ago, if no more vanished since.
func (p Plan) Believe(limits policy.Limits, c census.Census, last ledger.Ledger, now time.Time, grace time.Duration) []Refusal {
	if !slices.ContainsFunc(p.Decisions, func(d Decision) bool { return d.Ownerless }) {
		return nil
	}
	refusals := Dropped(c, last.Figures, limits)
	d := last.Doubt
	if len(refusals) == 0 || d.At == 0 {
		return refusals
	}
	over := time.Unix(d.At, 0).Add(max(grace, leastDoubt))
	if Dropped(c, d.Figures, limits) == nil && !now.Add(jitter(grace)).Before(over) {
		return nil
	}
	return refusals
}

// Dropped returns a refusal for each list of the census that is far below the figures.
func Dropped(c census.Census, then census.Figures, limits policy.Limits) []Refusal {
	now, words := c.Figures(), c.Words()
	var refusals []Refusal
	for _, list := range []struct {
		kind              string
		now, then, enough int
	}{
		{words.Counted, now.Pods, then.Pods, *limits.MinEntries},
		{"nodes", now.Nodes, then.Nodes, fewNodes},
	} {
		most := *limits.MaxPodDrop
		read := list.kind != "nodes" || c.ReadsNodes()
		if read && list.then >= list.enough && float64(list.then-list.now) > most*float64(list.then) {
			message := fmt.Sprintf("%s has %d %s, down from %d in the last run, a drop of more than the allowed %s",
				words.Subject, list.now, list.kind, list.then, percent(most))
			refusals = append(refusals, refusal("limits.maxPodDrop", message, "check that "+words.Source+" is the right one and lists everything; "+
				"if it does, run again after a grace period, raise limits.maxPodDrop or"))
		}
	}
	return refusals
}

// percent returns a fraction for people.
func percent(fraction float64) string { return fmt.Sprintf("%.4g %%", fraction*100) }

// A Refusal is one limit that the plan exceeds.
type Refusal struct {
	Limit   string `json:"limit"`   // the policy's field, or a description
	Message string `json:"message"` // the limit and the figures
	Remedy  string `json:"remedy"`  // what the operator does, in one sentence
}

// noPods names the limit of a plan whose census is empty. It is not a field of the policy.
const noPods = "noPods"

// LimitNames returns the names of the limits that an operator may lift.
func LimitNames() []string { return []string{"maxReleases", "maxFraction", "maxPodDrop", noPods} }

// Name returns the one of LimitNames that refuses.
func (r Refusal) Name() string {
	if field, ok := strings.CutPrefix(r.Limit, "limits."); ok {
		return field
	}
	return noPods
}

// refusal returns a Refusal. The advice says what to do before the limit is lifted.
func refusal(limit, message, advice string) Refusal {
	r := Refusal{Limit: limit, Message: limit + ": " + message}
	r.Remedy = advice + " give --unsafe-ignore-limit=" + r.Name()
	return r
}

// A Selection says which allocations a run reports and releases. An allocation matches if
// it matches one name of each list that is not empty, and if it is known not to be of an excluded
// namespace. The zero Selection matches all.
//
// A Selection narrows nothing else: all allocations are listed, judged and remembered.
type Selection struct {
	Namespaces         []string `json:"namespaces,omitempty"` // of the owner's pod
	ExcludedNamespaces []string `json:"excludedNamespaces,omitempty"`
	Pods               []string `json:"pods,omitempty"`  // of the owner, as namespace/name
	Nodes              []string `json:"nodes,omitempty"` // of the owner, even if a run learned it
	Backends           []string `json:"backends,omitempty"`

	// Addresses are as ipam.Shown returns them. Each is meant in every network.
	Addresses []netip.Addr `json:"addresses,omitempty"`

	// Pools are what people type for pools, and Found has the pools that they mean: see
	// report.PoolsNamed. What is not found is not selected.
	Pools []string              `json:"pools,omitempty"`
	Found map[ipam.PoolRef]bool `json:"-"`
}

// Everything reports whether the selection matches all allocations.
func (s Selection) Everything() bool {
	return !s.ByOwner() && len(s.Backends)+len(s.Pools) == 0
}

// String names the selection for people, such as "namespace shop, node n1 or n2". It is
// empty for the zero Selection.
func (s Selection) String() string {
	var parts, addresses []string
	for _, ip := range s.Addresses {
		addresses = append(addresses, ip.String())
	}
	for _, list := range []struct {
		kind  string
		names []string
	}{{"namespace", s.Namespaces}, {"any namespace but", s.ExcludedNamespaces}, {"pod", s.Pods}, {"node", s.Nodes}, {"backend", s.Backends}, {"pool", s.Pools}, {"address", addresses}} {
		if len(list.names) > 0 {
			parts = append(parts, list.kind+" "+strings.Join(list.names, " or "))
		}
	}
	return strings.Join(parts, ", ")
}

// ByOwner reports whether the selection looks at the owners or the addresses of allocations.
func (s Selection) ByOwner() bool {
	return len(s.Namespaces)+len(s.ExcludedNamespaces)+len(s.Pods)+len(s.Nodes)+len(s.Addresses) > 0
}

// matches reports whether the allocation itself matches. One without a known namespace may be of
// an excluded one.
func (s Selection) matches(a *ipam.Allocation) bool {
	if len(s.ExcludedNamespaces) > 0 && a.Owner.Pod.Namespace == "" {
		return false
	}
	return s.MatchesPool(a.Backend, a.Pool) && anyOf(s.Namespaces, a.Owner.Pod.Namespace) &&
		anyOf(s.Pods, a.Owner.Pod.String()) && anyOf(s.Nodes, a.Owner.Node) && anyOf(s.Addresses, ipam.Shown(a.IP))
}

// MatchesPool reports whether a pool matches, for any owner.
func (s Selection) MatchesPool(backend, pool string) bool {
	return anyOf(s.Backends, backend) && (len(s.Pools) == 0 || s.Found[ipam.PoolRef{Backend: backend, Name: pool}])
}

// NamesBackend reports whether a backend matches, for any pool and owner.
func (s Selection) NamesBackend(backend string) bool { return anyOf(s.Backends, backend) }

// anyOf reports whether the names have this one, or are empty.
func anyOf[E comparable](names []E, name E) bool {
	return len(names) == 0 || slices.Contains(names, name)
}

// ShortPool returns the name of a pool without its namespace. The name of a Calico block is
// its range, and has a slash and no namespace.
func ShortPool(pool string) string {
	if _, err := netip.ParsePrefix(pool); err == nil {
		return pool
	}
	return pool[strings.LastIndexByte(pool, '/')+1:]
}

// Of returns which of the decisions are selected, by index; nil if all are. They must be on
// everything: see Decide.
//
// The allocations that one ADD made are selected together: the siblings of a group, and
// those of one pod and one address in several stores. A group is released together or not
// at all, and an address is free only if no store has it.
func (s Selection) Of(decisions []Decision) []bool {
	allocations := make([]*ipam.Allocation, len(decisions))
	for i := range decisions {
		allocations[i] = decisions[i].Allocation
	}
	return s.of(allocations)
}

// OfRecords is Of for the records of a journal. One ADD made those of one sandbox and interface.
func (s Selection) OfRecords(records []ipam.Record) []bool {
	allocations := make([]*ipam.Allocation, len(records))
	for i, r := range records {
		a := &ipam.Allocation{Backend: r.Backend, Pool: r.Pool, Key: r.Key}
		a.IP, _ = netip.ParseAddr(r.IP) // it may have none
		a.Owner.Pod, a.Owner.Node = r.Owner.PodRef(), r.Owner.Node
		if r.Owner.Sandbox != "" {
			a.Group = r.Owner.Sandbox + " " + r.Owner.Interface
		}
		allocations[i] = a
	}
	return s.of(allocations)
}

// of selects the allocations that match and what is bound to them, but nothing that is bound to one of
// an excluded namespace.
func (s Selection) of(allocations []*ipam.Allocation) []bool {
	if s.Everything() {
		return nil
	}
	selected, excluded := make([]bool, len(allocations)), make([]bool, len(allocations))
	for i, a := range allocations {
		selected[i] = s.matches(a)
		excluded[i] = slices.Contains(s.ExcludedNamespaces, a.Owner.Pod.Namespace)
	}
	spread(allocations, selected)
	spread(allocations, excluded)
	for i := range selected {
		selected[i] = selected[i] && !excluded[i]
	}
	return selected
}

// spread selects what is bound to a selected allocation, directly or through others.
func spread(allocations []*ipam.Allocation, selected []bool) {
	bound := make(map[groupKey][]int)
	var next []int // those whose keys were not followed yet
	for i, a := range allocations {
		for _, b := range groupKeysOf(a) {
			bound[b] = append(bound[b], i)
		}
		if selected[i] {
			next = append(next, i)
		}
	}
	for len(next) > 0 {
		last := len(next) - 1
		i := next[last]
		next = next[:last]
		for _, b := range groupKeysOf(allocations[i]) {
			for _, other := range bound[b] {
				if !selected[other] {
					selected[other] = true
					next = append(next, other)
				}
			}
			delete(bound, b) // all of it is selected
		}
	}
}

// A groupKey is what the allocations of one ADD have in common.
type groupKey struct {
	group string
	pod   ipam.PodRef
	ip    netip.Addr
}

// groupKeysOf returns the keys of an allocation.
func groupKeysOf(a *ipam.Allocation) []groupKey {
	var keys []groupKey
	if a.Group != "" {
		keys = append(keys, groupKey{group: a.Group})
	}
	if a.HoldsAddress() && a.IP.IsValid() && a.NamesPod() {
		keys = append(keys, groupKey{pod: a.Owner.Pod, ip: a.IP})
	}
	return keys
}

// Select returns the plan without the orphans that are not selected. selected is by index; nil
// selects all.
func (p Plan) Select(selected []bool) Plan {
	if selected == nil {
		return p
	}
	p.selected = selected
	p.Due = slices.DeleteFunc(slices.Clone(p.Due), func(i int) bool { return !selected[i] })
	return p
}

// Selects reports whether the plan is about the allocation of a decision, by index.
func (p Plan) Selects(i int) bool { return p.selected == nil || p.selected[i] }
