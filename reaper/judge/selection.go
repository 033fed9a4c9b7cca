package judge

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A Selection says which allocations a run reports and releases. An allocation matches if
// it matches one name of each list that is not empty. The zero Selection matches all.
//
// A Selection narrows nothing else: all allocations are listed, judged and remembered.
type Selection struct {
	Namespaces []string `json:"namespaces,omitempty"` // of the owner's pod
	Pods       []string `json:"pods,omitempty"`       // of the owner, as namespace/name
	Nodes      []string `json:"nodes,omitempty"`      // of the owner, even if a run learned it
	Backends   []string `json:"backends,omitempty"`

	// Pools are what people type for pools, and Found has the pools that they mean: see
	// report.PoolsNamed. What is not found is not selected.
	Pools []string              `json:"pools,omitempty"`
	Found map[ipam.PoolRef]bool `json:"-"`
}

// Everything reports whether the selection matches all allocations.
func (s Selection) Everything() bool {
	return len(s.Namespaces)+len(s.Pods)+len(s.Nodes)+len(s.Backends)+len(s.Pools) == 0
}

// String names the selection for people, such as "namespace shop, node n1 or n2". It is
// empty for the zero Selection.
func (s Selection) String() string {
	var parts []string
	for _, list := range []struct {
		kind  string
		names []string
	}{{"namespace", s.Namespaces}, {"pod", s.Pods}, {"node", s.Nodes}, {"backend", s.Backends}, {"pool", s.Pools}} {
		if len(list.names) > 0 {
			parts = append(parts, list.kind+" "+strings.Join(list.names, " or "))
		}
	}
	return strings.Join(parts, ", ")
}

// ByOwner reports whether the selection looks at the owners of allocations.
func (s Selection) ByOwner() bool { return len(s.Namespaces)+len(s.Pods)+len(s.Nodes) > 0 }

// matches reports whether the allocation itself matches.
func (s Selection) matches(a *ipam.Allocation) bool {
	return s.MatchesPool(a.Backend, a.Pool) && anyOf(s.Namespaces, a.Owner.Pod.Namespace) &&
		anyOf(s.Pods, a.Owner.Pod.String()) && anyOf(s.Nodes, a.Owner.Node)
}

// MatchesPool reports whether a pool matches, for any owner.
func (s Selection) MatchesPool(backend, pool string) bool {
	return anyOf(s.Backends, backend) && (len(s.Pools) == 0 || s.Found[ipam.PoolRef{Backend: backend, Name: pool}])
}

// NamesBackend reports whether a backend matches, for any pool and owner.
func (s Selection) NamesBackend(backend string) bool { return anyOf(s.Backends, backend) }

// anyOf reports whether the names have this one, or are empty.
func anyOf(names []string, name string) bool { return len(names) == 0 || slices.Contains(names, name) }

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
	if s.Everything() {
		return nil
	}
	selected, allocations := make([]bool, len(decisions)), make([]*ipam.Allocation, len(decisions))
	for i := range decisions {
		allocations[i] = decisions[i].Allocation
		selected[i] = s.matches(allocations[i])
	}
	selectBound(allocations, selected)
	return selected
}

// OfRecords is Of for the records of a journal. One ADD made those of one sandbox and interface.
func (s Selection) OfRecords(records []ipam.Record) []bool {
	if s.Everything() {
		return nil
	}
	selected, allocations := make([]bool, len(records)), make([]*ipam.Allocation, len(records))
	for i, r := range records {
		a := &ipam.Allocation{Backend: r.Backend, Pool: r.Pool, Key: r.Key}
		a.IP, _ = netip.ParseAddr(r.IP) // it may have none
		a.Owner.Pod, a.Owner.Node = r.Owner.PodRef(), r.Owner.Node
		if r.Owner.Sandbox != "" {
			a.Group = r.Owner.Sandbox + " " + r.Owner.Interface
		}
		selected[i], allocations[i] = s.matches(a), a
	}
	selectBound(allocations, selected)
	return selected
}

// selectBound selects what is bound to a selected allocation, directly or through others.
func selectBound(allocations []*ipam.Allocation, selected []bool) {
	bound := make(map[bond][]int)
	var next []int // those whose bonds were not followed yet
	for i, a := range allocations {
		for _, b := range bondsOf(a) {
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
		for _, b := range bondsOf(allocations[i]) {
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

// A bond is what the allocations of one ADD have in common.
type bond struct {
	group string
	pod   ipam.PodRef
	ip    netip.Addr
}

// bondsOf returns the bonds of an allocation. An object that protects others has none: no
// ADD made it.
func bondsOf(a *ipam.Allocation) []bond {
	var bonds []bond
	if a.Group != "" {
		bonds = append(bonds, bond{group: a.Group})
	}
	if a.HoldsAddress() && a.IP.IsValid() && a.NamesPod() {
		bonds = append(bonds, bond{pod: a.Owner.Pod, ip: a.IP})
	}
	return bonds
}

// Select returns the plan without the orphans that are not selected, and without those
// that protect an allocation that stays. selected is by index; nil selects all.
func (p Plan) Select(selected []bool) Plan {
	if selected == nil {
		return p
	}
	p.selected = selected
	due := make(map[int]bool, len(p.Due))
	for _, i := range p.Due {
		due[i] = selected[i]
	}
	for _, i := range p.Due {
		stays := func(protected int) bool { return !due[protected] }
		if due[i] && slices.ContainsFunc(p.Decisions[i].After, stays) {
			due[i] = false // it has no group: no ADD made it
		}
	}
	p.Due = slices.DeleteFunc(slices.Clone(p.Due), func(i int) bool { return !due[i] })
	return p
}

// Selects reports whether the plan is about the allocation of a decision, by index.
func (p Plan) Selects(i int) bool { return p.selected == nil || p.selected[i] }
