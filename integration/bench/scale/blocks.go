package main

import (
	"net/netip"
	"strconv"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
)

const (
	blockSize = 64 // addresses of a block
	perBlock  = 60 // of these, allocated
	blockBits = 26
)

// blockPool is the IPPool of all blocks.
var blockPool = netip.MustParsePrefix("10.0.0.0/12")

// blocks is the number of blocks, one per node.
func (s size) blocks() int { return (s.total() + perBlock - 1) / perBlock }

// A blockID is the number of a block, and of its node.
type blockID int

func (e entry) block() blockID { return blockID(int(e) / perBlock) }

// ordinal is the entry's place in its block.
func (e entry) ordinal() int { return int(e) % perBlock }

// blockIP is the address that an entry has in its block.
func (e entry) blockIP() netip.Addr { return address(int(e.block())*blockSize + e.ordinal()) }

func (b blockID) cidr() netip.Prefix {
	return netip.PrefixFrom(address(int(b)*blockSize), blockBits)
}

func (b blockID) node() string { return nodeName(int(b)) }

// given returns the sandbox that Calico gave the entry's address to.
func (e entry) given() calico.Sandbox {
	return calico.Sandbox{Namespace: e.namespace(), Pod: e.pod(), Node: e.block().node(), ContainerID: e.sandbox()}
}

// entries returns the entries of a block.
func (s size) entries(b blockID) []entry {
	var all []entry
	for e := entry(int(b) * perBlock); e < entry(min((int(b)+1)*perBlock, s.total())); e++ {
		all = append(all, e)
	}
	return all
}

// A blockContent is a block as Calico stores it, in Calico's order.
type blockContent struct {
	CIDR        netip.Prefix      `json:"cidr"`
	Affinity    string            `json:"affinity"`
	Allocations [blockSize]*int   `json:"allocations"`
	Unallocated []int             `json:"unallocated"`
	Attributes  []attribute       `json:"attributes"`
	Sequence    uint64            `json:"sequenceNumber"`
	Sequences   map[string]uint64 `json:"sequenceNumberForAllocation"`
	Deleted     bool              `json:"deleted"`
	Strict      *bool             `json:"strictAffinity,omitempty"` // required in Kubernetes
}

// An attribute says whose an address is.
type attribute struct {
	Handle string `json:"handle_id"`
	Owner  owner  `json:"secondary"`
}

// An owner is a pod.
type owner struct {
	Namespace string `json:"namespace"`
	Node      string `json:"node"`
	Pod       string `json:"pod"`
	Timestamp string `json:"timestamp"`
}

// content returns a block as successive ADDs leave it.
func (s size) content(b blockID) blockContent {
	began := uint64(created.UnixNano()) + uint64(b)*blockSize
	c := blockContent{CIDR: b.cidr(), Affinity: "host:" + b.node(), Sequence: began, Sequences: map[string]uint64{}}
	for _, e := range s.entries(b) {
		c.Allocations[e.ordinal()] = new(len(c.Attributes))
		c.Attributes = append(c.Attributes, attribute{e.given().Handle(), owner{
			e.namespace(), b.node(), e.pod(), created.Format("2006-01-02 15:04:05.999999999 -0700 MST"),
		}})
		c.Sequences[strconv.Itoa(e.ordinal())] = c.Sequence
		c.Sequence++
	}
	for ordinal := len(c.Attributes); ordinal < blockSize; ordinal++ {
		c.Unallocated = append(c.Unallocated, ordinal)
	}
	return c
}
