package judge

import (
	"maps"
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
	compared := 0
	for _, p := range patterns {
		if p.Everything() {
			continue
		}
		names, ok := known[p.Of]
		if !ok {
			names = namesOf(p.Of, inv, c)
			known[p.Of] = names
		}
		u := Unmatched{Pattern: p}
		if !p.Exact() {
			if !slices.ContainsFunc(names, p.Matches) {
				found = append(found, u)
			}
			continue
		}
		if _, has := slices.BinarySearch(names, p.Text); has {
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
	names := make(map[string]bool)
	add := func(pod ipam.PodRef) {
		switch kind {
		case policy.NamespaceNames:
			names[pod.Namespace] = true
		case policy.PodNames:
			names[pod.Name] = true
		case policy.BackendNames: // no pod has one
		}
	}
	for _, l := range inv.Listings {
		if kind == policy.BackendNames && l.Status != ipam.StatusSkipped {
			names[l.Backend] = true
		}
		for _, pool := range l.Pools {
			for i := range pool.Allocations {
				add(pool.Allocations[i].Owner.Pod)
			}
		}
	}
	for _, pod := range c.Pods() {
		add(pod.Ref)
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}
