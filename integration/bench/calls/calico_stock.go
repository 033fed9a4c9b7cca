package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
	"github.com/ip-reaper/ip-reaper/integration/kit/parallel"
)

const (
	namespace = "calls" // of the pods, dead or alive
	blockSize = 64
	writers   = 16 // objects that are written at a time
)

var pool = netip.MustParsePrefix("10.0.0.0/12")

// A sandboxSize says how much there is.
type sandboxSize struct{ leaked, live, nodes int }

// check refuses sizes that make no sense, or more blocks than there are.
func (s sandboxSize) check() error {
	if s.leaked < 1 || s.live < 1 || s.nodes < 1 || s.nodes > 100 || s.leaked+s.live > 50_000 {
		return fmt.Errorf("%d leaked and %d live sandboxes on %d nodes: want 1 to 100 nodes, and 2 to 50,000 sandboxes", s.leaked, s.live, s.nodes)
	}
	return nil
}

// blocks is the number of blocks that this takes.
func (s sandboxSize) blocks() int {
	n := 0
	for node := range s.nodes {
		n += (s.on(node) + blockSize - 1) / blockSize
	}
	return n
}

// on is how many sandboxes a node has.
func (s sandboxSize) on(node int) int {
	n := (s.leaked + s.live) / s.nodes
	if node < (s.leaked+s.live)%s.nodes {
		n++
	}
	return n
}

// A blockStock is what Calico has stored, made of what a real ADD has stored.
type blockStock struct {
	*calico.Datastore
	size  sandboxSize
	block map[string]any // with one address

	blocks  map[netip.Prefix]string // contents
	handles []handle                // of the leaked

	ranges int // that left has asked of etcd
}

// A handle is that of one sandbox with one address.
type handle struct {
	id    string
	block netip.Prefix
}

// fill writes nodes, pool and pods, and prepares the rest.
func (s *blockStock) fill(ctx context.Context) error {
	if err := s.Cluster.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	for node := range s.size.nodes {
		if err := s.CreateNode(ctx, nodeName(node)); err != nil {
			return err
		}
	}
	if err := s.ApplyPool(ctx, "calls", pool, 26); err != nil {
		return err
	}
	if err := s.learn(ctx); err != nil {
		return err
	}
	return s.allocate(ctx)
}

// learn takes what a real ADD leaves for an example.
func (s *blockStock) learn(ctx context.Context) error {
	sandbox := calico.NewSandbox(namespace, "example", nodeName(0))
	ips, err := s.Add(ctx, sandbox)
	if err != nil {
		return err
	}
	cidr := netip.PrefixFrom(ips[0], 26).Masked()
	o, err := s.Get(ctx, calico.Block, s.BlockName(cidr))
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(o.Content), &s.block); err != nil {
		return err
	}
	if err := s.Del(ctx, sandbox); err != nil {
		return err
	}
	return errors.Join(s.Delete(ctx, calico.Block, s.BlockName(cidr)),
		s.Delete(ctx, calico.Affinity, s.AffinityName(nodeName(0), cidr)))
}

func nodeName(n int) string { return fmt.Sprintf("node-%d", n) }

// allocate prepares blocks and leaked handles, and writes what stays as it is:
// the affinities of the blocks, the handles and the pods of the live.
func (s *blockStock) allocate(ctx context.Context) error {
	s.blocks = map[netip.Prefix]string{}
	var lives []func() error
	count, total := 0, s.size.leaked+s.size.live
	for node := range s.size.nodes {
		var sandboxes []calico.Sandbox
		var live []bool
		for range s.size.on(node) {
			// The live ones are spread over everything.
			alive := (count+1)*s.size.live/total > count*s.size.live/total
			name := fmt.Sprintf("gone-%d", count)
			if alive {
				name = fmt.Sprintf("live-%d", count)
			}
			sandboxes = append(sandboxes, calico.NewSandbox(namespace, name, nodeName(node)))
			live = append(live, alive)
			count++
		}
		for first := 0; first < len(sandboxes); first += blockSize {
			in := sandboxes[first:min(first+blockSize, len(sandboxes))]
			cidr := nth(len(s.blocks))
			content, err := s.content(cidr, in)
			if err != nil {
				return err
			}
			s.blocks[cidr] = content
			if err := s.PutAffinity(ctx, nodeName(node), cidr, "confirmed"); err != nil {
				return err
			}
			ip := cidr.Addr()
			for i, sandbox := range in {
				if live[first+i] {
					lives = append(lives, s.alive(ctx, sandbox, cidr, ip))
				} else {
					s.handles = append(s.handles, handle{sandbox.Handle(), cidr})
				}
				ip = ip.Next()
			}
		}
	}
	return parallel.Each(writers, lives, func(_ int, write func() error) error { return write() })
}

// nth is the nth block of the pool.
func nth(n int) netip.Prefix {
	base := pool.Addr().As4()
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{base[0], base[1], byte(n / 4), byte(n % 4 * blockSize)}), 26)
}

// alive writes a pod that has the address, and the handle.
func (s *blockStock) alive(ctx context.Context, sandbox calico.Sandbox, block netip.Prefix, ip netip.Addr) func() error {
	return func() error {
		return errors.Join(
			s.CreatePod(ctx, sandbox, []netip.Addr{ip}),
			s.PutHandle(ctx, sandbox.Handle(), map[netip.Prefix]int{block: 1}))
	}
}

// content is a block whose first addresses the sandboxes have.
func (s *blockStock) content(cidr netip.Prefix, sandboxes []calico.Sandbox) (string, error) {
	example, err := json.Marshal(s.block["attributes"])
	if err != nil {
		return "", err
	}
	allocations, unallocated := make([]any, blockSize), []int{}
	var attributes []map[string]any
	// Each ADD wrote the block once, after the first that made it.
	const began = 1_800_000_000_000_000_000
	sequences := map[string]uint64{}
	for ordinal := range blockSize {
		if ordinal >= len(sandboxes) {
			unallocated = append(unallocated, ordinal)
			continue
		}
		var of []map[string]any
		if err := json.Unmarshal(example, &of); err != nil {
			return "", err
		}
		sandbox := sandboxes[ordinal]
		of[0]["handle_id"] = sandbox.Handle()
		owner, ok := of[0]["secondary"].(map[string]any)
		if !ok {
			return "", fmt.Errorf("the attribute of a real ADD is %s", example)
		}
		owner["namespace"], owner["pod"], owner["node"] = sandbox.Namespace, sandbox.Pod, sandbox.Node
		allocations[ordinal] = ordinal
		attributes = append(attributes, of[0])
		sequences[strconv.Itoa(ordinal)] = began + uint64(ordinal)
	}
	block := map[string]any{}
	for key, value := range s.block {
		block[key] = value
	}
	block["cidr"], block["affinity"] = cidr, "host:"+sandboxes[0].Node
	block["allocations"], block["unallocated"], block["attributes"] = allocations, unallocated, attributes
	block["sequenceNumber"], block["sequenceNumberForAllocation"] = uint64(began+len(sandboxes)), sequences
	text, err := json.Marshal(block)
	if err == nil {
		err = calico.Invariants(string(text))
	}
	return string(text), err
}

// leak writes all blocks, and the handles of the leaked.
func (s *blockStock) leak(ctx context.Context) error {
	var writes []func() error
	for cidr, content := range s.blocks {
		writes = append(writes, func() error { return s.Put(ctx, calico.Block, s.BlockName(cidr), content) })
	}
	for _, h := range s.handles {
		writes = append(writes, func() error { return s.PutHandle(ctx, h.id, map[netip.Prefix]int{h.block: 1}) })
	}
	return parallel.Each(writers, writes, func(_ int, write func() error) error { return write() })
}

// left returns how many addresses and how many handles there are, beside those of
// the live.
func (s *blockStock) left(ctx context.Context) (addresses, handles int, err error) {
	s.ranges += 2
	blocks, err := s.List(ctx, calico.Block)
	if err != nil {
		return 0, 0, err
	}
	for _, o := range blocks {
		var b struct{ Allocations []*int }
		if err := json.Unmarshal([]byte(o.Content), &b); err != nil {
			return 0, 0, err
		}
		for _, index := range b.Allocations {
			if index != nil {
				addresses++
			}
		}
	}
	list, err := s.List(ctx, calico.Handle)
	return addresses - s.size.live, len(list) - s.size.live, err
}
