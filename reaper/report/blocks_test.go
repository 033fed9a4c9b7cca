package report_test

import (
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A blockOf is a block of 10.0.0.0/28 with 4 addresses, of which some are taken.
type blockOf struct {
	node  string
	taken int
}

// divided returns a network of such blocks.
func divided(d ipam.Division, all ...blockOf) report.Results {
	l := ipam.Listing{Backend: "calico", Status: ipam.StatusOK, Whole: true}
	var names []string
	for i, b := range all {
		in := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(4 * i)}), 30)
		p := ipam.Pool{Name: in.String(), Range: in, Node: b.node}
		ip := in.Addr()
		for range b.taken {
			p.Allocations = append(p.Allocations, ipam.Allocation{Backend: "calico", Pool: p.Name, IP: ip})
			ip = ip.Next()
		}
		l.Pools, names = append(l.Pools, p), append(names, p.Name)
	}
	f := report.Results{Inventory: ipam.Inventory{Listings: []ipam.Listing{l}}, Nodes: []string{"a", "b"}}
	for i := range l.Pools {
		for j := range l.Pools[i].Allocations {
			f.Earlier = append(f.Earlier, report.Entry{Backend: "calico", Pool: l.Pools[i].Name, IP: l.Pools[i].Allocations[j].IP.String(), Outcome: report.Kept})
		}
	}
	f.Layout = report.NewLayout(f.Inventory)
	whole := netip.MustParsePrefix("10.0.0.0/28")
	f.Layout.AddNetworks(l, []ipam.Network{{
		Name: "p", Range: whole, Known: true, Usable: ipam.NewSpans(ipam.SpanOf(whole)), Default: true, Pools: names, Division: &d,
	}})
	return f
}

// What a pod on node b, which waits, is told: as calico-ipam decides.
func TestWhyNoBlockIsLeft(t *testing.T) {
	strict := &ipam.BlockTerms{Strict: true, MaxPerNode: 20}
	none, one := new(big.Int), big.NewInt(1)
	owned := func(node string, blocks ...string) map[string][]netip.Prefix {
		var all []netip.Prefix
		for _, b := range blocks {
			all = append(all, netip.MustParsePrefix(b))
		}
		return map[string][]netip.Prefix{node: all}
	}
	for name, tt := range map[string]struct {
		division ipam.Division
		blocks   []blockOf
		why      string // of pods on b
		without  string // how many of the nodes a and b get none
		counts   string // room, full, missing
	}{
		"its block has room":            {ipam.Division{Terms: strict, Unclaimed: none}, []blockOf{{"a", 1}, {"b", 3}}, "", "0", "2 0 0 []"},
		"another block is left":         {ipam.Division{Terms: strict, Unclaimed: one}, []blockOf{{"a", 1}, {"b", 4}}, "", "0", "1 1 0 []"},
		"a node that does not exist":    {ipam.Division{Terms: strict, Unclaimed: none}, []blockOf{{"a", 1}, {"gone", 1}, {"gone", 4}}, "whose node b, which has no block: all 3 blocks are taken, 2 of nodes that do not exist (gone), and no node may borrow", "1", "1 0 2 [gone]"},
		"it is full":                    {ipam.Division{Terms: strict, Unclaimed: none}, []blockOf{{"a", 1}, {"b", 4}}, "node b, which has 1 full block: all 2 blocks are taken, and no node may borrow", "1", "1 1 0 []"},
		"it borrows":                    {ipam.Division{Terms: &ipam.BlockTerms{MaxPerNode: 20}, Unclaimed: none}, []blockOf{{"a", 1}, {"b", 4}}, "", "0", "1 1 0 []"},
		"it borrows from a lost node":   {ipam.Division{Terms: &ipam.BlockTerms{MaxPerNode: 20}, Unclaimed: none}, []blockOf{{"a", 4}, {"gone", 1}}, "", "0", "0 1 1 [gone]"},
		"it has as many as it may have": {ipam.Division{Terms: &ipam.BlockTerms{MaxPerNode: 1}, Unclaimed: one}, []blockOf{{"a", 1}, {"b", 4}}, "node b, which has 1 full block, since a node may have 1 block (maxBlocksPerHost)", "1", "1 1 0 []"},
		"nodes take no blocks":          {ipam.Division{Terms: &ipam.BlockTerms{Strict: true, Manual: true, MaxPerNode: 20}, Unclaimed: one}, []blockOf{{"a", 1}}, "node b, which has no block: nodes take no blocks by themselves", "1", "1 0 0 []"},
		"its block is to be made":       {ipam.Division{Terms: strict, Unclaimed: none, Owned: owned("b", "10.0.0.12/30")}, []blockOf{{"a", 1}}, "", "0", "1 0 0 []"},
		"its claim is stale":            {ipam.Division{Terms: strict, Unclaimed: none, Owned: owned("b", "10.0.0.0/30")}, []blockOf{{"a", 1}}, "node b, which has no block: the only block is taken", "1", "1 0 0 []"},
		"its claims count as no blocks": {ipam.Division{Terms: &ipam.BlockTerms{Strict: true, MaxPerNode: 1}, Unclaimed: one, Owned: owned("b", "10.0.0.0/30")}, []blockOf{{"a", 1}}, "", "0", "1 0 0 []"},
		"the terms are unknown":         {ipam.Division{Unknown: "forbidden", Unclaimed: none}, []blockOf{{"a", 1}, {"b", 4}}, "it is unknown whether a block is left for its node b: forbidden", "unknown", "1 1 0 []"},
		"unknown, and it has room":      {ipam.Division{Unknown: "forbidden", Unclaimed: none}, []blockOf{{"b", 1}}, "", "unknown", "1 0 0 []"},
		"the size is unknown":           {ipam.Division{Terms: strict}, []blockOf{{"b", 4}}, "it is unknown whether a block is left for its node b: how many blocks are left in p", "unknown", "0 1 0 []"},
	} {
		t.Run(name, func(t *testing.T) {
			r := report.Make(divided(tt.division, tt.blocks...))
			b := r.Networks[0].Blocks
			if got := fmt.Sprint(b.Room, b.Full, b.Missing, b.MissingNodes); got != tt.counts {
				t.Errorf("blocks with room, full, of missing nodes: %s, want %s", got, tt.counts)
			}
			without := "unknown"
			if b.NodesWithoutRoom != nil {
				without = fmt.Sprint(*b.NodesWithoutRoom)
			}
			if without != tt.without {
				t.Errorf("%s nodes get no address, want %s", without, tt.without)
			}
			x, err := report.Explain(r, report.Question{Namespace: "app", Pod: "web"}, []report.Asking{{Namespace: "app", Pod: "web", Node: "b", Waits: true, Default: true}}, nil)
			if err != nil || len(x.Places) != 1 {
				t.Fatalf("places %v, %v", x.Places, err)
			}
			why := ""
			if no := x.Places[0].NoBlock; no != nil {
				why = no.Why
			}
			if (why == "") != (tt.why == "") || !strings.Contains(why, strings.TrimPrefix(tt.why, "whose ")) {
				t.Errorf("told %q, want %q", why, tt.why)
			}
		})
	}
}

// A block of an IPPool that hands nothing out is neither full nor has it room: nobody can fill it.
func TestBlocksOfAClosedNetworkAreClosed(t *testing.T) {
	f := divided(ipam.Division{Terms: &ipam.BlockTerms{MaxPerNode: 20}, Unclaimed: new(big.Int)}, blockOf{"a", 1}, blockOf{"b", 4})
	f.Layout.Networks[0].Closed, f.Layout.Pools[0].Closed = "disabled", "disabled"
	r := report.Make(f)
	if b := r.Networks[0].Blocks; b != nil {
		t.Errorf("the blocks count as %+v", *b)
	}
	x, err := report.Explain(r, report.Question{Pool: "10.0.0.0/30"}, nil, nil)
	if err != nil || len(x.Places) != 1 || x.Places[0].Closed != "disabled" {
		t.Errorf("told of a block of it: %+v, %v", x.Places, err)
	}
}

// A node on Windows has one block, and one that a selector may leave out counts only once it has a block.
func TestWhichNodesHaveNoRoom(t *testing.T) {
	for name, tt := range map[string]struct {
		unclaimed *big.Int
		by        string
		windows   []string
		limited   bool
		manual    bool
		want      int
		why       string // of a pod on b
		advice    string
	}{
		"all nodes": {
			unclaimed: new(big.Int),
			want:      2,
			why:       "no block is left for its node b, which has no block: the only block is taken, and no node may borrow from the block of another (strictAffinity)",
			advice:    "add an IPPool; or let nodes borrow, unless routes are made for whole blocks only: set strictAffinity of Calico's IPAMConfig default to false",
		},
		"some nodes only": {
			unclaimed: new(big.Int),
			by:        "nodeSelector zone == 'a'",
			want:      1,
			why:       "no block is left for its node b, which has no block: the only block is taken, and no node may borrow from the block of another (strictAffinity)",
			advice:    "add an IPPool; or let nodes borrow, unless routes are made for whole blocks only: set strictAffinity of Calico's IPAMConfig default to false",
		},
		"a full node on Windows": {
			unclaimed: big.NewInt(9),
			windows:   []string{"a"},
			want:      1,
		},
		"no borrowing beside Windows": {
			unclaimed: new(big.Int),
			windows:   []string{"a"},
			want:      2,
			why:       "no block is left for its node b, which has no block: the only block is taken, and no node may borrow from the block of another (strictAffinity)",
			advice:    "add an IPPool",
		},
		"no borrowing where Calico refuses it": {
			unclaimed: new(big.Int),
			limited:   true,
			want:      2,
			why:       "no block is left for its node b, which has no block: the only block is taken, and no node may borrow from the block of another (strictAffinity)",
			advice:    "add an IPPool",
		},
		"nodes take no blocks": {
			unclaimed: big.NewInt(3),
			manual:    true,
			want:      2,
			why:       "no block is left for its node b, which has no block: nodes take no blocks by themselves (autoAllocateBlocks is false), and no node may borrow from the block of another (strictAffinity)",
			advice:    "let nodes take blocks: set autoAllocateBlocks of Calico's IPAMConfig default to true",
		},
	} {
		t.Run(name, func(t *testing.T) {
			terms := &ipam.BlockTerms{Strict: true, Manual: tt.manual, MaxPerNode: 20, Limited: tt.limited}
			f := divided(ipam.Division{Terms: terms, Unclaimed: tt.unclaimed}, blockOf{"a", 4})
			f.Layout.Networks[0].By = tt.by
			f.Living = living(t, tt.windows...)
			r := report.Make(f)
			if got := *r.Networks[0].Blocks.NodesWithoutRoom; got != tt.want {
				t.Errorf("%d nodes get no address, want %d", got, tt.want)
			}
			x, err := report.Explain(r, report.Question{Namespace: "app", Pod: "web"}, []report.Asking{{Namespace: "app", Pod: "web", Node: "b", Waits: true, Default: true}}, nil)
			if err != nil || len(x.Places) != 1 {
				t.Fatalf("places %v, %v", x.Places, err)
			}
			why := ""
			var advice []string
			if no := x.Places[0].NoBlock; no != nil {
				why = no.Why
				for _, remedy := range no.Remedies {
					advice = append(advice, remedy.Says)
				}
			}
			if got := strings.Join(advice, "; "); why != tt.why || got != tt.advice {
				t.Errorf("told %q, %q\nwant %q, %q", why, got, tt.why, tt.advice)
			}
		})
	}
}

// living returns a cluster of the nodes a and b, of which some run Windows.
func living(t *testing.T, windows ...string) *census.Census {
	t.Helper()
	var nodes []census.Node
	for _, name := range []string{"a", "b"} {
		nodes = append(nodes, census.Node{Name: name, Ready: true, Windows: slices.Contains(windows, name)})
	}
	found := reapertest.Lists{Nodes: nodes}.Census(t, census.Scope{Nodes: true})
	return &found
}
