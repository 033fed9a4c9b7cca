package report

import (
	"fmt"
	"iter"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// Blocks say how the nodes share an open network that gives its addresses out in blocks, after the run.
// Each block is counted in one of Room, Full and Missing.
type Blocks struct {
	Room int `json:"room"` // have a free address
	Full int `json:"full"` // have none

	// Missing counts the blocks of the nodes MissingNodes, which the cluster does not have. If its
	// nodes are unknown, it is 0.
	Missing      int      `json:"missing"`
	MissingNodes []string `json:"missingNodes"`

	// Unclaimed is how many blocks no node has taken yet; null if unknown.
	Unclaimed *big.Int `json:"unclaimed"`

	// MayBorrow says whether a node gets addresses of the blocks of other nodes when it has none
	// left and can take no block; null if unknown.
	MayBorrow *bool `json:"mayBorrow"`

	// NodesWithoutRoom counts the nodes that can get no address of the networks of this IP family;
	// null if unknown.
	NodesWithoutRoom *int `json:"nodesWithoutRoom"`

	Lends  bool             `json:"-"` // a node may borrow, and some block has a free address
	Shares map[string]Share `json:"-"` // by node
}

// A Share is what one node has of a network.
type Share struct {
	Blocks int  // that are its own
	Room   bool // one of them has a free address, or can be made
}

// countBlocks counts the blocks of the networks. The usage of the pools is known by now. The nodes
// are those of the cluster; nil if they are unknown.
func (y Layout) countBlocks(nodes []string, windows func(node string) bool) {
	byRef := make(map[ipam.PoolRef]*PoolReport, len(y.Pools))
	for i := range y.Pools {
		byRef[y.Pools[i].ref()] = &y.Pools[i]
	}
	for i := range y.Networks {
		n := &y.Networks[i]
		if n.Division == nil || n.Closed != "" {
			continue
		}
		b := &Blocks{MissingNodes: []string{}, Unclaimed: n.Division.Unclaimed}
		for _, name := range n.Pools {
			p := byRef[ipam.PoolRef{Backend: n.Backend, Name: name}]
			_, exists := slices.BinarySearch(nodes, p.Node)
			switch {
			case nodes != nil && p.Node != "" && !exists:
				b.Missing++
				if at, has := slices.BinarySearch(b.MissingNodes, p.Node); !has {
					b.MissingNodes = slices.Insert(b.MissingNodes, at, p.Node)
				}
			case p.full():
				b.Full++
			default:
				b.Room++
			}
			b.Lends = b.Lends || !p.full()
		}
		if terms := n.Division.Terms; terms != nil {
			may := !terms.Strict
			b.MayBorrow = &may
			b.Lends = b.Lends && may
		}
		b.Shares = n.shares(byRef)
		n.Blocks = b
	}
	for family := range y.families() {
		without := nodesWithoutRoom(family, nodes, windows)
		for _, n := range family {
			n.Blocks.NodesWithoutRoom = without
		}
	}
}

// full reports whether no address of the pool is free. It is not if that is unknown.
func (p PoolReport) full() bool { return p.Free != nil && p.Free.Sign() == 0 }

// families yields the networks with Blocks, by backend and IP family: a pod
// may get an address of any of them.
func (y Layout) families() iter.Seq[[]NetworkReport] {
	type kind struct {
		backend string
		ipv6    bool
	}
	of := make(map[kind][]NetworkReport)
	for _, n := range y.Networks {
		if n.Blocks != nil && n.Default {
			k := kind{n.Backend, isIPv6(n.Range)}
			of[k] = append(of[k], n)
		}
	}
	return maps.Values(of)
}

// isIPv6 reports whether a range is of IPv6.
func isIPv6(in string) bool { return strings.Contains(in, ":") }

// nodesWithoutRoom counts the nodes that can get no address of any of the networks; nil if that is
// unknown. A node without a block counts only if all nodes may have one.
func nodesWithoutRoom(networks []NetworkReport, nodes []string, windows func(node string) bool) *int {
	if nodes == nil || unknownOf(networks) != "" {
		return nil
	}
	everywhere := slices.ContainsFunc(networks, func(n NetworkReport) bool { return n.By == "" })
	count := 0
	for _, node := range nodes {
		if share := shareOf(node, networks); (share.Blocks > 0 || everywhere) && !mayGet(share, networks, windows(node)) {
			count++
		}
	}
	return &count
}

// unknownOf says what is unknown about who may use which block of the networks; empty if nothing is.
func unknownOf(networks []NetworkReport) string {
	for _, n := range networks {
		switch {
		case n.Partial:
			return "a block could not be read"
		case n.Division.Terms == nil:
			return n.Division.Unknown
		case n.Division.Unclaimed == nil:
			return "how many blocks are left in " + n.Name
		}
	}
	return ""
}

// shares returns what each node has of the network, whose pools are given. An affinity makes no block that of its
// node, unless the block says the same: it may be pending, about to be deleted, or stale. One whose block does not
// exist lets the node make that.
func (n NetworkReport) shares(byRef map[ipam.PoolRef]*PoolReport) map[string]Share {
	type claim struct{ node, block string }
	claimed := make(map[claim]bool)
	for node, owned := range n.Division.Owned {
		for _, block := range owned {
			claimed[claim{node, block.String()}] = true
		}
	}
	for _, name := range n.Pools {
		if node := byRef[ipam.PoolRef{Backend: n.Backend, Name: name}].Node; node != "" {
			claimed[claim{node, name}] = true
		}
	}
	shares := make(map[string]Share)
	for c := range claimed {
		share, p := shares[c.node], byRef[ipam.PoolRef{Backend: n.Backend, Name: c.block}]
		switch {
		case p == nil:
			share.Room = true
		case p.Node == c.node:
			share.Blocks++
			share.Room = share.Room || !p.full()
		}
		shares[c.node] = share
	}
	return shares
}

// shareOf returns what a node has of several networks.
func shareOf(node string, networks []NetworkReport) (all Share) {
	for _, n := range networks {
		share := n.Blocks.Shares[node]
		all.Blocks += share.Blocks
		all.Room = all.Room || share.Room
	}
	return all
}

// mayGet reports whether a node with this share can get an address of the networks: of its own
// blocks, of one that it takes, or of another node's. A node that has as many blocks as it may have
// borrows nothing either (autoAssign in libcalico-go's ipam). One on Windows takes one block, and borrows
// nothing.
func mayGet(share Share, networks []NetworkReport, windows bool) bool {
	terms := networks[0].Division.Terms
	most := terms.MaxPerNode
	if windows {
		most = 1
	}
	switch {
	case share.Room:
		return true
	case share.Blocks >= most:
		return false
	}
	return slices.ContainsFunc(networks, func(n NetworkReport) bool {
		return !terms.Manual && n.Division.Unclaimed.Sign() > 0 || n.Blocks.Lends && !windows
	})
}

// A NoBlock says why a node can get no address of a network in which some are free.
type NoBlock struct {
	Node     string         `json:"node"`
	Why      string         `json:"why"`
	Remedies []judge.Remedy `json:"remedies"`
}

// noBlock says why a node can get no address of any of the networks, which are of one IP family, or
// why that is unknown. It returns nil if the node can. The advice begins with what harms least.
func (r Report) noBlock(node string, networks []NetworkReport) *NoBlock {
	terms := networks[0].Division.Terms
	share := shareOf(node, networks)
	unknown := unknownOf(networks)
	windows := r.Living != nil && r.Living.Node(node).Windows
	switch {
	case share.Room:
		return nil
	case unknown != "":
		return &NoBlock{Node: node, Why: "it is unknown whether a block is left for its node " + node + ": " + unknown, Remedies: []judge.Remedy{}}
	case mayGet(share, networks, windows):
		return nil
	}
	has := "which has no block"
	if share.Blocks > 0 {
		has = "which has " + printable.Counted(share.Blocks, "full block")
	}
	found := &NoBlock{Node: node, Remedies: []judge.Remedy{}}
	advise := func(says string) { found.Remedies = append(found.Remedies, judge.Remedy{Says: says}) }
	switch {
	case windows && share.Blocks > 0:
		found.Why = fmt.Sprintf("no block is left for its node %s, %s: a node on Windows gets one, unless windows_use_single_network of its plugin is false", node, has)
		advise("run fewer pods on the node")
		return found
	case share.Blocks >= terms.MaxPerNode:
		found.Why = fmt.Sprintf("no block is left for its node %s, %s, since a node may have %s (maxBlocksPerHost)", node, has, printable.Counted(terms.MaxPerNode, "block"))
		advise("run fewer pods on the node")
		advise("or raise maxBlocksPerHost of Calico's IPAMConfig default: calicoctl sets it only while strictAffinity is true, and then no node borrows")
		return found
	}
	total, missing := 0, 0
	var gone []string
	for _, n := range networks {
		total += n.Blocks.Room + n.Blocks.Full + n.Blocks.Missing
		missing += n.Blocks.Missing
		gone = append(gone, n.Blocks.MissingNodes...)
	}
	slices.Sort(gone)
	why := []string{"all " + printable.Thousands(total) + " blocks are taken"}
	if total == 1 {
		why[0] = "the only block is taken"
	}
	if terms.Manual {
		why[0] = "nodes take no blocks by themselves (autoAllocateBlocks is false)"
	}
	if missing > 0 {
		why = append(why, fmt.Sprintf("%d of nodes that do not exist (%s)", missing, printable.Some(slices.Compact(gone))))
		advise("see that Calico's kube-controllers run: they take back the blocks of nodes that do not exist, with what leaked there and the addresses of their tunnels, unless something else is allocated in them")
	}
	if terms.Manual {
		advise("let nodes take blocks: set autoAllocateBlocks of Calico's IPAMConfig default to true")
	} else {
		advise("add an IPPool")
	}
	if terms.Strict {
		why = append(why, "and no node may borrow from the block of another (strictAffinity)")
		if !r.hasWindows() && !terms.Manual && !terms.Limited { // Calico refuses these without strictAffinity
			advise("or let nodes borrow, unless routes are made for whole blocks only: set strictAffinity of Calico's IPAMConfig default to false")
		}
	}
	found.Why = fmt.Sprintf("no block is left for its node %s, %s: %s", node, has, strings.Join(why, ", "))
	return found
}

// hasWindows reports whether a node runs Windows, or may: Calico gives no address on such a node while nodes
// may borrow.
func (r Report) hasWindows() bool {
	if r.Living == nil || !r.Living.HasNodes() {
		return true
	}
	for node := range r.Living.Nodes() {
		if r.Living.Node(node).Windows {
			return true
		}
	}
	return false
}
