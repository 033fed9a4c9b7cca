package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A search looks up the names of a selection.
type search struct {
	where string // after each name, such as " in the journal"
	wrong []string
	hints []string
}

// miss notes a name that stands for nothing, with the names near it. An address has none: what is near it
// is another pod's.
func (s *search) miss(kind, name string, names []string) {
	if kind == "address" {
		s.wrong = append(s.wrong, "no allocation of the address "+name+s.where)
		return
	}
	s.wrong = append(s.wrong, fmt.Sprintf("no %s named %q%s", kind, name, s.where))
	if meant := printable.Meant(name, names); meant != "" {
		s.hints = append(s.hints, meant)
	}
}

// err returns an *InputError with the names that stand for nothing, or nil.
func (s *search) err(hint string) error {
	if len(s.wrong) == 0 {
		return nil
	}
	return ipam.BadInput(errors.New(strings.Join(s.wrong, "; ")), cmp.Or(strings.Join(s.hints, " "), hint))
}

// resolveNames looks up the names of the selection. It returns an *InputError if one of them does
// not exist: a mistake in a name must not read as "nothing leaked", nor release what was to be excluded.
//
// What an allocation names exists, even a pod or a node that is gone: that is what a run
// releases. So does what the cluster has. What was not found but may exist is a warning: a
// store or the nodes were not listed, or the account cannot read the namespace. A node knows
// only its own pods. Only the first round looks: what it releases may be the last of a pool.
func (r *run) resolveNames(ctx context.Context, n round) error {
	s := n.selection
	if r.past.resolved || s.Everything() {
		return nil
	}
	r.past.resolved = true
	namespaces, pods, nodes, backends := make(map[string]bool), make(map[string]bool), make(map[string]bool), make(map[string]bool)
	allocated := make(map[netip.Addr]bool)
	for i := range n.verdicts.Decisions {
		a := n.verdicts.Decisions[i].Allocation
		owner := &a.Owner
		namespaces[owner.Pod.Namespace], pods[owner.Pod.String()], nodes[owner.Node] = true, true, true
		allocated[ipam.Shown(a.IP)] = true
	}
	for _, pod := range n.census.Pods() {
		namespaces[pod.Ref.Namespace], pods[pod.Ref.String()] = true, true
	}
	for name := range n.census.Nodes() {
		nodes[name] = true
	}
	for _, l := range n.inventory.Listings {
		backends[l.Backend] = true
		if slices.Contains(s.Backends, l.Backend) && l.Status == ipam.StatusSkipped {
			r.warn("the selected backend " + l.Backend + " was not listed: " + l.Message)
		}
	}
	var found search
	look := func(kind string, names []string, known map[string]bool, sure func(name string) bool) {
		for _, name := range names {
			switch {
			case known[name]:
			case n.inventory.Complete() && sure(name):
				found.miss(kind, name, slices.Collect(maps.Keys(known)))
			default:
				r.warn("nothing was found of the selected " + kind + " " + name)
			}
		}
	}
	always := func(string) bool { return true }
	for _, name := range s.ExcludedNamespaces {
		has := census.Present
		if !namespaces[name] {
			has = r.namespace(ctx, name)
		}
		near := slices.Collect(maps.Keys(namespaces))
		switch {
		case has == census.Absent, has == census.Unknown && printable.Meant(name, near) != "":
			found.miss("namespace", name, near)
		case has == census.Unknown:
			r.warn("nothing was found of the excluded namespace " + name)
		}
	}
	look("namespace", s.Namespaces, namespaces, func(name string) bool { return r.namespace(ctx, name) == census.Absent })
	look("pod", s.Pods, pods, func(string) bool { return r.Node == "" && r.Cluster != nil })
	look("node", s.Nodes, nodes, func(string) bool { return n.census.HasNodes() })
	look("backend", s.Backends, backends, always)
	look("pool", s.Pools, poolNames(n.stock), always)
	for _, ip := range s.Addresses {
		look("address", []string{ip.String()}, map[string]bool{ip.String(): allocated[ip]}, always)
	}
	return found.err("nothing was released; a run without a selection lists all there is")
}

// poolNames returns what people may type for pools.
func poolNames(s stock) map[string]bool {
	known := make(map[string]bool)
	for _, name := range s.layout.PoolNames() {
		known[name] = true
	}
	for _, name := range s.selection.Pools {
		if _, ok := poolsNamed(name, s.inventory, s.layout); ok {
			known[name] = true
		}
	}
	return known
}

// namespace reports whether the cluster has a namespace in which nothing was found.
func (o Options) namespace(ctx context.Context, name string) census.Presence {
	if o.HasNamespace == nil {
		return census.Unknown
	}
	return o.HasNamespace(ctx, name)
}

// poolsOf returns the pools that any of the names that people type stands for.
func poolsOf(names []string, inv ipam.Inventory, layout report.Layout) map[ipam.PoolRef]bool {
	found := make(map[ipam.PoolRef]bool)
	for _, name := range names {
		pools, _ := poolsNamed(name, inv, layout)
		maps.Copy(found, pools)
	}
	return found
}

// poolsNamed is Layout.PoolsNamed that also finds the pools that a layout does not have:
// those without a range, such as an overlapping-range reservation.
func poolsNamed(name string, inv ipam.Inventory, layout report.Layout) (pools map[ipam.PoolRef]bool, known bool) {
	pools, known = layout.PoolsNamed(name)
	for _, l := range inv.Listings {
		for _, p := range l.Pools {
			if !p.Range.IsValid() && (p.Name == name || judge.ShortPool(p.Name) == name) {
				pools[ipam.PoolRef{Backend: l.Backend, Name: p.Name}], known = true, true
			}
		}
	}
	return pools, known
}

// warnOfMisspelt warns of the names in the policy that match nothing and are nearly one that
// exists: a misspelt protection protects nothing. A namespace that the cluster has is no mistake,
// even if nothing is in it.
func (r *run) warnOfMisspelt(ctx context.Context, s stock) {
	exact := slices.DeleteFunc(r.Policy.Patterns(), func(p policy.Pattern) bool { return !p.Exact() })
	for _, u := range judge.UnmatchedOf(exact, s.inventory, s.census) {
		if u.Meant == "" || u.Of == policy.NamespaceNames && r.namespace(ctx, u.Text) == census.Present {
			continue
		}
		r.warn(u.String())
	}
}

// Unmatched lists the stores and the pods, and returns the patterns of the policy that match
// nothing there. It decides nothing, and writes nothing. With a *PartialError, something could not
// be listed that they may match; with any other error, there is no answer.
func Unmatched(ctx context.Context, o Options) ([]judge.Unmatched, error) {
	r := newRun(o, true)
	inv := r.list(ctx)
	survey(ctx, r.Backends, inv)
	living, err := census.Take(ctx, r.Cluster, census.Scope{})
	if err != nil {
		return nil, err
	}
	return judge.UnmatchedOf(r.Policy.Patterns(), inv, living), r.failed()
}
