package main

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/integration/kit/calico"
)

// A block has what Calico relies on, before a release and after it, and each entry has an
// address of its own in the block of its node.
func TestBlocksAreAsCalicoReliesOnThem(t *testing.T) {
	for _, s := range []size{10, 54, 55, 1000} {
		addresses := map[netip.Addr]bool{}
		for b := range blockID(s.blocks()) {
			before, stale := s.content(b), []entry(nil)
			for _, e := range s.entries(b) {
				if e.block() != b || !b.cidr().Contains(e.blockIP()) || !blockPool.Contains(e.blockIP()) {
					t.Fatalf("%d pods: entry %d has %v in block %v", s, e, e.blockIP(), b.cidr())
				}
				addresses[e.blockIP()] = true
				if e.stale() {
					stale = append(stale, e)
				}
			}
			after := before.without(stale)
			for _, c := range []blockContent{before, after} {
				text, err := json.Marshal(c)
				if err != nil {
					t.Fatal(err)
				}
				if err := calico.Invariants(string(text)); err != nil {
					t.Fatalf("%d pods: %v", s, err)
				}
			}
			if len(before.Attributes)-len(stale) != len(after.Attributes) || before.Sequence+1 != after.Sequence ||
				len(before.Sequences) != len(before.Attributes) || len(after.Sequences) != len(after.Attributes) {
				t.Errorf("%d pods: %d stale of %+v leave %+v", s, len(stale), before, after)
			}
		}
		if len(addresses) != s.total() {
			t.Errorf("%d pods: %d addresses", s, len(addresses))
		}
	}
}

// The largest cluster is the one that Calico supports.
func TestLargestClusterHasFiveThousandBlocks(t *testing.T) {
	if s := size(272_728); s.total() != 300_000 || s.blocks() != 5000 || len(s.entries(4999)) != 60 {
		t.Errorf("%d addresses in %d blocks, %d in the last", s.total(), s.blocks(), len(s.entries(4999)))
	}
	for n := range size(1000).stale() {
		if e := stale(n); !e.stale() || e.nth() != n || live(n).stale() {
			t.Fatalf("the stale entry %d is %d, which is number %d", n, e, e.nth())
		}
	}
}
