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
	if r.earlier.resolved || s.Everything() {
		return nil
	}
	r.earlier.resolved = true
	allocated := make(map[netip.Addr]bool)
	allocations := func(yield func(*ipam.Allocation) bool) {
		for _, d := range n.verdicts.Decisions {
			if !yield(d.Allocation) { // its node may be learned
				return
			}
		}
	}
	for a := range allocations {
		allocated[ipam.Shown(a.IP)] = true
	}
	names := func(kind policy.NameKind) []string {
		return judge.NamesOf(kind, allocations, n.census)
	}
	var backends []string
	for _, l := range n.inventory.Listings {
		backends = append(backends, l.Backend)
		if slices.Contains(s.Backends, l.Backend) && l.Status == ipam.StatusSkipped {
			r.warn("the selected backend " + l.Backend + " was not listed: " + l.Message)
		}
	}
	var found search
	look := func(kind string, names, known []string, sure func(name string) bool) {
		for _, name := range names {
			switch {
			case slices.Contains(known, name):
			case n.inventory.Complete() && sure(name):
				found.miss(kind, name, known)
			default:
				r.warn("nothing was found of the selected " + kind + " " + name)
			}
		}
	}
	always := func(string) bool { return true }
	namespaces := names(policy.NamespaceNames)
	for _, name := range s.ExcludedNamespaces {
		has := census.Present
		if !slices.Contains(namespaces, name) {
			has = r.namespace(ctx, name)
		}
		switch {
		case has == census.Absent, has == census.Unknown && printable.Meant(name, namespaces) != "":
			found.miss("namespace", name, namespaces)
		case has == census.Unknown:
			r.warn("nothing was found of the excluded namespace " + name)
		}
	}
	look("namespace", s.Namespaces, namespaces, func(name string) bool { return r.namespace(ctx, name) == census.Absent })
	look("pod", s.Pods, names(judge.PodRefs), func(string) bool { return r.Node == "" && r.Cluster != nil })
	look("node", s.Nodes, names(policy.NodeNames), func(string) bool { return n.census.HasNodes() })
	look("backend", s.Backends, backends, always)
	look("pool", n.unknown, n.layout.PoolNames(), always)
	for _, ip := range s.Addresses {
		if !allocated[ip] {
			look("address", []string{ip.String()}, nil, always)
		}
	}
	return found.err("nothing was released; a run without a selection lists all there is")
}

// namespace reports whether the cluster has a namespace in which nothing was found.
func (o Options) namespace(ctx context.Context, name string) census.Presence {
	if o.HasNamespace == nil {
		return census.Unknown
	}
	return o.HasNamespace(ctx, name)
}

// poolsOf returns the pools that names that people type stand for, and which of the names stand for
// nothing. Besides those of Layout.PoolsNamed, it knows the pools without a range, such as an
// overlapping-range reservation.
func poolsOf(names []string, inv ipam.Inventory, layout report.Layout) (pools map[ipam.PoolRef]bool, unknown []string) {
	pools = make(map[ipam.PoolRef]bool)
	for _, name := range names {
		found, known := layout.PoolsNamed(name)
		for _, l := range inv.Listings {
			for _, p := range l.Pools {
				if !p.Range.IsValid() && (p.Name == name || judge.ShortPool(p.Name) == name) {
					pools[ipam.PoolRef{Backend: l.Backend, Name: p.Name}], known = true, true
				}
			}
		}
		maps.Copy(pools, found)
		if !known {
			unknown = append(unknown, name)
		}
	}
	return pools, unknown
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
