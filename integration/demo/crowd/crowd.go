package main

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"
)

// state is the namespace of the ledger and the journals.
const state = "ip-reaper"

// A size says how much there is.
type size struct {
	nodes, unreachable int
	blocks             []int // of each of calicoPools

	live      []int // pods with an address of each of calicoPools
	leaked    []int // as live, without the unreachable and the ruled
	down      int   // leaked on unreachable nodes
	ruled     int   // leaked in the namespace that a rule holds
	newer     int   // of the leaked, those whose grace period is not over
	twice     int   // of the leaked, those of a former sandbox of a live pod
	sets      int   // StatefulSets of three pods
	absent    int   // of their pods, those that come back
	plain     int   // pods of the host's network on each node
	finished  int   // pods without an address
	attached  []int // pods with an address of each of ranges, those of the StatefulSets too
	detached  []int // leaked
	nights    []int // addresses of Calico's that the run of each night released
	nightlies []int // as nights, of the first range
}

// large is a cluster as a user had it.
var large = size{
	nodes: 60, unreachable: 3, blocks: []int{237, 60, 4},
	live: []int{2041, 240, 130}, leaked: []int{227, 460, 120}, down: 31, ruled: 11, newer: 96, twice: 40,
	sets: 40, absent: 9, plain: 13, finished: 54,
	attached: []int{300, 120, 9}, detached: []int{40, 96, 17},
	nights: []int{64, 212}, nightlies: []int{4, 12},
}

// calicoPools are Calico's pools: the last is full, the second is where batch jobs leak.
var calicoPools = []struct {
	name  string
	cidr  netip.Prefix
	nodes int // blocks are of the first so many nodes; 0: of all
}{
	{"default-ipv4-ippool", netip.MustParsePrefix("10.32.0.0/18"), 0},
	{"batch", netip.MustParsePrefix("10.96.0.0/20"), 0},
	{"edge", netip.MustParsePrefix("10.112.0.0/24"), 4},
}

const blockSize = 64

// A sandbox is what an address is given to.
type sandbox struct {
	namespace, pod string
	node           int
	id             string
	ip             netip.Addr // of Calico's; invalid if it has none
	network        int        // index into ranges, if second is valid
	second         netip.Addr // of Whereabouts'
	born           time.Time
	set            string // the StatefulSet of the pod, if it has one
	from, until    int    // the phases from which and until which the stores have it
}

// A block is one of Calico's.
type block struct {
	pool, node int
	cidr       netip.Prefix
	owners     [blockSize]*sandbox
	tunnel     [blockSize]bool
}

// A crowd is all that is stored.
type crowd struct {
	size
	now    time.Time
	random *rand.Rand
	blocks []*block
	rooms  [][]int // free offsets of each range

	live   []*sandbox // whose pods exist
	doomed []*sandbox // whose pods exist until phase today
	leaked []*sandbox // whose pods do not exist
	sets   []string   // StatefulSets

	absentees []*sandbox // whose pods come back
}

// newCrowd returns the same crowd for the same size, but for the time.
func newCrowd(s size, now time.Time) *crowd {
	c := &crowd{size: s, now: now, random: rand.New(rand.NewPCG(14, 3245))}
	for pool, n := range s.blocks {
		for i := range n {
			c.blocks = append(c.blocks, newBlock(s, pool, i))
		}
	}
	for _, r := range ranges {
		offsets := r.offsets()
		c.random.Shuffle(len(offsets), func(i, j int) { offsets[i], offsets[j] = offsets[j], offsets[i] })
		c.rooms = append(c.rooms, offsets)
	}
	c.tunnels()
	c.populate()
	c.leak()
	return c
}

func newBlock(s size, pool, i int) *block {
	ip := calicoPools[pool].cidr.Addr()
	for range i * blockSize {
		ip = ip.Next()
	}
	nodes := calicoPools[pool].nodes
	if nodes == 0 {
		nodes = s.nodes
	}
	return &block{pool: pool, node: i % nodes, cidr: netip.PrefixFrom(ip, 26)}
}

func nodeName(n int) string { return fmt.Sprintf("worker-%02d", n+1) }

// isDown reports whether the node is unreachable.
func (s size) isDown(n int) bool { return n%(s.nodes/s.unreachable) == 16%(s.nodes/s.unreachable) }

// hexID returns an ID of a sandbox as container runtimes make them.
func (c *crowd) hexID() string {
	id := make([]byte, 32)
	for i := range id {
		id[i] = byte(c.random.Uint32())
	}
	return hex.EncodeToString(id)
}

// name returns a name as a ReplicaSet gives it to its pods.
func (c *crowd) name(app string) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	suffix := make([]byte, 5)
	for i := range suffix {
		suffix[i] = letters[c.random.IntN(len(letters))]
	}
	return fmt.Sprintf("%s-%s", app, suffix)
}

// give gives the sandbox an address of a block of its node, in the pool or, if the node has
// none left there, in the first pool. It reports whether there was one.
func (c *crowd) give(s *sandbox, pool int) bool {
	for _, p := range []int{pool, 0} {
		var with []*block
		for _, b := range c.blocks {
			if b.pool == p && b.node == s.node && b.used() < blockSize {
				with = append(with, b)
			}
		}
		if len(with) > 0 {
			with[c.random.IntN(len(with))].give(s, c.random)
			return true
		}
	}
	return false
}

func (b *block) used() int {
	n := 0
	for _, s := range b.owners {
		if s != nil {
			n++
		}
	}
	return n
}

func (b *block) give(s *sandbox, random *rand.Rand) {
	for {
		ordinal := random.IntN(blockSize)
		if b.owners[ordinal] == nil {
			b.owners[ordinal], s.ip = s, b.at(ordinal)
			return
		}
	}
}

func (b *block) at(ordinal int) netip.Addr {
	ip := b.cidr.Addr().As4()
	ip[3] += byte(ordinal)
	return netip.AddrFrom4(ip)
}
