package reaper_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Equal ledgers have equal forms, however they were made.
func TestEqualLedgersHaveEqualForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLedger(t)
		shards := rapid.Permutation(l.Shards(reaper.LedgerShards)).Draw(t, "order")
		merged := shards[0].Merge(shards[1:]...)
		if !merged.Equal(l) || !bytes.Equal(merged.Encode(), l.Encode()) {
			t.Errorf("%s merged of its shards is %s", l.Text(), merged.Text())
		}
		again, err := reaper.DecodeLedger(l.Encode())
		if err != nil || !again.Equal(l) || !bytes.Equal(again.Encode(), l.Encode()) {
			t.Errorf("%s is read as %s, %v", l.Text(), again.Text(), err)
		}
		if other := drawLedger(t); bytes.Equal(other.Encode(), l.Encode()) != other.Equal(l) {
			t.Errorf("%s and %s: forms and ledgers differ", l.Text(), other.Text())
		}
	})
}

// drawLedger draws a ledger with all that a ledger can have.
func drawLedger(t *rapid.T) reaper.Ledger {
	id := rapid.Map(rapid.StringMatching(`[a-d]{1,2}`), hashOf)
	times := rapid.MapOfN(id, rapid.Int64Range(0, 1<<37), 0, 20)
	nodes := make(map[string][]string)
	for id, node := range rapid.MapOfN(id, rapid.SampledFrom([]string{"n1", "n2", "n10"}), 0, 20).Draw(t, "nodes") {
		nodes[node] = append(nodes[node], id)
	}
	data := fmt.Appendf(nil, `{"version":1,"seen":%s,"nodes":%s,"graces":%s,"restored":%s,"figures":{"pods":%d,"nodes":%d}}`,
		mustJSON(t, times.Draw(t, "seen")), mustJSON(t, nodes),
		mustJSON(t, rapid.MapOfN(id, rapid.Int64Range(1, 1<<20), 0, 20).Draw(t, "graces")), mustJSON(t, times.Draw(t, "restored")),
		rapid.IntRange(0, 1000).Draw(t, "pods"), rapid.IntRange(0, 1000).Draw(t, "nodes"))
	l, err := reaper.DecodeLedger(data)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return l
}

// Promise 8. An entry is in the same shard in every ledger that has it, and in one only.
func TestEntryStaysInItsShard(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLedger(t)
		all := l.Merge(drawLedger(t)).Shards(reaper.LedgerShards)
		entries := 0
		for n, s := range l.Shards(reaper.LedgerShards) {
			entries += s.Len()
			if merged := s.Merge(all[n]); merged.Len() != all[n].Len() {
				t.Errorf("shard %d of %s is not part of shard %[1]d of a larger ledger, %s", n, s.Text(), all[n].Text())
			}
			for other := range reaper.LedgerShards {
				if got, want := s.IsShard(other, reaper.LedgerShards), other == n || s.Len() == 0; got != want {
					t.Errorf("shard %d of %s can be shard %d: %v, want %v", n, s.Text(), other, got, want)
				}
			}
		}
		if entries != l.Len() || !l.IsShard(0, 1) {
			t.Errorf("the shards have %d entries, want %d", entries, l.Len())
		}
	})
}

// Promise 2. A merged ledger has all that either of the two has.
func TestMergedLedgerHasAllOfBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawLedger(t), drawLedger(t)
		ab := a.Merge(b)
		if !ab.Equal(b.Merge(a)) {
			t.Errorf("%s with %s depends on the order", a.Text(), b.Text())
		}
		if !ab.Merge(a).Equal(ab) || !ab.Merge(b).Equal(ab) || ab.Waiting() < max(a.Waiting(), b.Waiting()) {
			t.Errorf("%s with %s is %s", a.Text(), b.Text(), ab.Text())
		}
	})
}

// Promise 2, 8. The ledger was edited by hand, or cut short. The run warns, the grace periods
// begin again, and the run writes a whole ledger.
func TestEditedLedgerKeeps(t *testing.T) {
	for _, text := range []string{
		`{"version":2,"seen":{},"seenBy":{"a":1}}`,
		`{"version":1,"seen":{},"nodes":["n1"]}`,
		`{"version":1,"seen":{},"nodes":{"n1":"x"}}`,
		`{"version":1,"seen":{},"nodes":{"n1":{"x":1}}}`,
		`{"version":1,"seen":{},"figures":[1]}`,
		`{"version":1,"seen":{},"figures":{"pods":-1}}`,
		`{"version":1,"seen":{},"figures":{"nodes":-1}}`,
		`{"version":1,"seen":{},"figures":{"pods":1.5}}`,
		`{"version":1,"seen":{},"figures":{"pods":9223372036854775808}}`,
		`version: 1`,
	} {
		if _, err := reaper.DecodeLedger([]byte(text)); !errors.Is(err, reaper.ErrLedgerDamaged) {
			t.Errorf("%s: %v, want ErrLedgerDamaged", text, err)
		}
		h, m := waitingHarness(t)
		before := contentsOf(t, m)
		h.run(t)
		h.ledgers.stored = []byte(text)
		h.now = noon.Add(time.Hour)
		report := h.run(t)
		equal(t, "summary after "+text, report.Summary, reaper.Counts{Entries: 3, InUse: 1, Suspected: 2})
		equal(t, "warnings", len(report.Warnings), 1)
		equal(t, "store", contentsOf(t, m), before)
		h.now = noon.Add(75 * time.Minute)
		equal(t, "released later", h.run(t).Summary.Released, 2)
	}
}

// Promise 2. Impossible figures make runs refuse until an operator looks.
func TestImpossibleFiguresRefuse(t *testing.T) {
	h, m := waitingHarness(t)
	h.policy = backendtest.Impatient()
	before := contentsOf(t, m)
	h.ledgers.put(t, `{"version":1,"seen":{},"figures":{"pods":9223372036854775807,"nodes":9223372036854775807}}`)
	_, err := reaper.Run(t.Context(), h.options())
	equal(t, "refused", limitError(t, err) != nil, true)
	equal(t, "store", contentsOf(t, m), before)
	h.change = func(o *reaper.Options) { o.IgnoreLimits = true }
	equal(t, "released after an operator looked", h.run(t).Summary.Released, 2)
}

// Promise 2. An edited ledger has an allocation on two nodes. It counts as on one of
// them.
func TestLedgerWithOneAllocationOnTwoNodes(t *testing.T) {
	l, err := reaper.DecodeLedger(fmt.Appendf(nil, `{"version":1,"seen":{},"nodes":{"n1":[%q,%[1]q],"n2":[%[1]q],"":[%q]}}`, hashOf("x"), hashOf("y")))
	equal(t, "error", err, nil)
	again, err := reaper.DecodeLedger(l.Encode())
	equal(t, "error", err, nil)
	equal(t, "read again", again.Equal(l), true)
	equal(t, "remembered", l.Len(), 2)
}
