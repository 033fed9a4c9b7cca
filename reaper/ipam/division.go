package ipam

import (
	"math/big"
	"net/netip"
)

// A Division says how a network gives its addresses out in blocks, each of which belongs to a node.
// Each pool of the network is a block, and its name is the CIDR.
type Division struct {
	// Unclaimed is how many blocks no node has taken yet; nil if that is unknown.
	Unclaimed *big.Int

	// Terms say what a node may do when its blocks are full; nil if that is unknown, and Unknown
	// says why.
	Terms   *BlockTerms
	Unknown string

	// Owned are the blocks to which each node has a claim, whether they exist or not.
	Owned map[string][]netip.Prefix
}

// BlockTerms are the terms on which nodes get blocks.
type BlockTerms struct {
	Strict     bool // a node gets no address of a block of another node
	Manual     bool // a node takes no block by itself
	MaxPerNode int  // how many blocks of one IP family a node may have
	Limited    bool // a setting says so, in place of the default
}
