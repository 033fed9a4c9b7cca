package judge

import (
	"fmt"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// nodeForeign holds what may be of another cluster that keeps its addresses in the same store. Only
// the exact name of a node proves that it is of this cluster.
func nodeForeign(c *Case) (Ruling, bool) {
	n := c.storeNode()
	if c.policy.Nodes.Foreign == policy.Release || !c.isForeign(n) || !c.HoldsAddress() {
		return noMatch()
	}
	name, says := n.Name, "it has no node "+n.Node
	if n.Node != n.Name && n.Node != "" {
		name += " (" + n.Node + " in its cluster)"
	}
	note := "the store has the node " + name + ", and the list of nodes does not"
	switch {
	case n.Node == "":
		note = "the node " + name + " of the store cannot be read"
		says = note
	case n.Twin != "":
		note = "the nodes " + n.Name + " and " + n.Twin + " of the store are both called " + n.Node + " in their clusters"
		says = "it has at most one node " + n.Node
	}
	if c.StoreNode == nil {
		note = "its node is unknown, and " + note
	}
	return match(note, Evidence{fromNodes, says}, Evidence{fromStoreNode + n.Name, "it may be of another cluster"})
}

// storeNode returns the node of the store for an allocation. If its node is not known at all, that
// may be any of the store's: then it is one that may be of another cluster. It is nil if there is
// none.
func (c *Case) storeNode() *ipam.StoreNode {
	if c.StoreNode == nil && c.Owner.Node == "" {
		return c.stores[c.Backend].foreign
	}
	return c.StoreNode
}

// isForeign reports whether a node of a store may be of another cluster.
func (f *Facts) isForeign(n *ipam.StoreNode) bool {
	return n != nil && (n.Twin != "" || !f.census.HasNode(n.Node))
}

func nodeUnreachable(c *Case) (Ruling, bool) {
	if c.policy.Nodes.Unreachable == policy.Release {
		return noMatch()
	}
	for name := range c.nodesOf() {
		if c.census.Unreachable(name) {
			evidence := notReady(c.census.Node(name))
			note := "node " + name + strings.TrimPrefix(evidence.Says, "it")
			if name != c.Owner.Node && name != c.last().Node {
				note += ", and may be its node by another name"
			}
			return match(note, evidence)
		}
	}
	return noMatch()
}

// nodeUnknown holds what may be on any of the unreachable nodes. The node is also unknown
// if the store has its own names for nodes.
func nodeUnknown(c *Case) (Ruling, bool) {
	if c.policy.Nodes.Unknown == policy.Release || c.knowsNode() || c.nodeLearned || !c.HoldsAddress() {
		return noMatch()
	}
	var names []string
	var evidence []Evidence
	for _, n := range c.census.Away() {
		if c.mayBeOn(n) {
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
func (c *Case) mayBeOn(n census.Node) bool {
	known := !c.Created.IsZero() && !c.Created.After(c.now)
	switch {
	case n.Created.IsZero():
		return true
	case known && n.Created.Sub(c.Created) > maxClockSkew, n.Created.Sub(c.since()) > maxClockSkew:
		return false
	}
	neverReady := !n.Lost && n.Since.Sub(n.Created).Abs() <= time.Second
	return !neverReady
}

// storeUnseen holds all of a store that may be that of another cluster.
func storeUnseen(c *Case) (Ruling, bool) {
	n := c.stores[c.Backend].unseen
	if n == 0 {
		return noMatch()
	}
	note := fmt.Sprintf("no pod shows its own address among the %d of the store", n)
	return match(note, Evidence{fromPods, note})
}
