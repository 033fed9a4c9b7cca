package judge

import (
	"fmt"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

func nodeUnreachable(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	if f.policy.Nodes.Unreachable == policy.Release {
		return noMatch()
	}
	for name := range f.nodesOf(a) {
		if f.census.Unreachable(name) {
			evidence := notReady(f.census.Node(name))
			note := "node " + name + strings.TrimPrefix(evidence.Says, "it")
			if name != a.Owner.Node && name != f.ledger.Last(a).Node {
				note += ", and may be its node by another name"
			}
			return match(note, evidence)
		}
	}
	return noMatch()
}

// nodeUnknown holds what may be on any of the unreachable nodes. The node is also unknown
// if the store has its own names for nodes.
func nodeUnknown(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	if f.policy.Nodes.Unknown == policy.Release || f.knowsNode(a) || a.NodeLearned || !a.HoldsAddress() {
		return noMatch()
	}
	var names []string
	var evidence []Evidence
	for _, n := range f.census.Away() {
		if f.mayBeOn(a, n) {
			names, evidence = append(names, n.Name), append(evidence, notReady(n))
		}
	}
	if len(names) == 0 {
		return noMatch()
	}
	const most = 5
	note := "its node is unknown, and these are not ready: " + strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		note += fmt.Sprintf(" and %d more", more)
	}
	return match(note, evidence[:min(most, len(evidence))]...)
}

// mayBeOn reports whether the allocation may be on an unreachable node, by their ages.
//
// What is older than the node was never there. What was made after the node fell silent may
// be: a kubelet whose certificate has expired still makes sandboxes, since the plugins have
// their own kubeconfigs.
func (f *Facts) mayBeOn(a *ipam.Allocation, n census.Node) bool {
	known := !a.Created.IsZero() && !a.Created.After(f.now)
	switch {
	case n.Created.IsZero():
		return true
	case known && n.Created.Sub(a.Created) > maxClockSkew, n.Created.Sub(f.since(a)) > maxClockSkew:
		return false
	}
	neverReady := !n.Lost && n.Since.Sub(n.Created).Abs() <= time.Second
	return !neverReady
}
