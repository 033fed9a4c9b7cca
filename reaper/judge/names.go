package judge

import (
	"iter"
	"maps"
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// maxCompared is how many names are compared with those of a policy to find the near ones: it
// takes about a second.
const maxCompared = 500_000

// An Unmatched is a pattern of a policy that matches nothing that was listed.
type Unmatched struct {
	policy.Pattern
	Meant string // asks whether a near name is meant; empty if none is near, or the pattern has a wildcard
}

// String says what the pattern does not match.
func (u Unmatched) String() string {
	says := u.At + ": " + u.Text + " matches " + map[policy.NameKind]string{
		policy.NamespaceNames: "the namespace of no pod and no allocation that was listed",
		policy.PodNames:       "no pod and no allocation that was listed",
		policy.BackendNames:   "no store that was listed",
		policy.PoolNames:      "no pool, network or attachment that was listed",
		policy.NodeNames:      "no node that was listed, and no allocation's",
	}[u.Of]
	if u.Meant != "" {
		says += ": " + u.Meant
	}
	return says
}

// UnmatchedOf returns those of the patterns that match nothing in the inventory and the census. A
// name that another pattern of the list matches is never meant: its protection is not missing.
func UnmatchedOf(patterns []policy.Pattern, inv ipam.Inventory, c census.Census) []Unmatched {
	var found []Unmatched
	known := make(map[policy.NameKind][]string)
	var ranges []netip.Prefix // those of the names that are one
	compared := 0
	for _, p := range patterns {
		if p.Everything() {
			continue
		}
		names, ok := known[p.Of]
		if !ok {
			names = namesOf(p.Of, inv, c)
			known[p.Of] = names
			for _, name := range names {
				if prefix, err := netip.ParsePrefix(name); err == nil && p.Of == policy.PoolNames {
					ranges = append(ranges, prefix)
				}
			}
		}
		u := Unmatched{Pattern: p}
		if !p.Exact() {
			if !slices.ContainsFunc(names, p.Matches) {
				found = append(found, u)
			}
			continue
		}
		outer, _ := netip.ParsePrefix(p.Text)
		around := func(inner netip.Prefix) bool { return policy.Around(outer, inner) }
		if _, has := slices.BinarySearch(names, p.Text); has || p.Of == policy.PoolNames && slices.ContainsFunc(ranges, around) {
			continue
		}
		if compared += len(names); compared <= maxCompared {
			u.Meant = printable.Meant(p.Text, slices.DeleteFunc(printable.Near(p.Text, names), p.Lists))
		}
		found = append(found, u)
	}
	return found
}

// namesOf returns the names of a kind that were listed, sorted.
func namesOf(kind policy.NameKind, inv ipam.Inventory, c census.Census) []string {
	var names []string
	switch kind {
	case policy.BackendNames:
		for _, l := range inv.Listings {
			if l.Status != ipam.StatusSkipped && !l.Protects {
				names = append(names, l.Backend)
			}
		}
	case policy.PoolNames:
		for _, l := range inv.Listings {
			for _, n := range l.Networks {
				names = append(append(names, n.Name), n.Attachments...)
			}
		}
		for _, p := range poolsOfRules(inv) {
			names = append(names, p.Names[0], p.Names[1], p.Range.String())
		}
	default:
		return NamesOf(kind, inv.Allocations(), c)
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// PodRefs are the names of pods as namespace/name.
const PodRefs = policy.NameKind(-1)

// NamesOf returns the names of the namespaces, pods or nodes of these allocations and of the census,
// sorted.
func NamesOf(kind policy.NameKind, allocations iter.Seq[*ipam.Allocation], c census.Census) []string {
	names := make(map[string]bool)
	add := func(pod ipam.PodRef, node string) {
		switch kind {
		case policy.NamespaceNames:
			names[pod.Namespace] = true
		case policy.PodNames:
			names[pod.Name] = true
		case PodRefs:
			names[pod.String()] = true
		case policy.NodeNames:
			names[node] = true
		case policy.BackendNames, policy.PoolNames: // no pod has one
		}
	}
	for a := range allocations {
		add(a.Owner.Pod, a.Owner.Node)
	}
	for _, pod := range c.Pods() {
		add(pod.Ref, pod.Node)
	}
	for node := range c.Nodes() {
		add(ipam.PodRef{}, node)
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}
