package reaper_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Equal ledgers have equal forms.
func TestLedgerFormWithNodesAndFigures(t *testing.T) {
	const text = `{"version":1,"seen":{"a":1},"nodes":{"n1":["x","y"],"n2":["z"]},"figures":{"pods":7,"nodes":3}}`
	l, err := reaper.DecodeLedger([]byte(`{"version":1,"figures":{"nodes":3,"pods":7},"nodes":{"n2":["z"],"n1":["y","x"]},"seen":{"a":1},"new":[]}`))
	equal(t, "error", err, nil)
	for range 10 {
		equal(t, "form", string(l.Encode()), text)
	}
	equal(t, "remembered", [2]int{l.Len(), l.Waiting()}, [2]int{4, 1})
}

// drawLedger draws a ledger with times, nodes and figures.
func drawLedger(t *rapid.T) reaper.Ledger {
	id := rapid.StringMatching(`[a-d]{1,2}`)
	data := fmt.Appendf(nil, `{"version":1,"seen":%s,"nodes":%s,"figures":{"pods":%d,"nodes":%d}}`,
		mustJSON(t, rapid.MapOfN(id, rapid.Int64Range(0, 1<<37), 0, 20).Draw(t, "seen")),
		mustJSON(t, map[string][]string{"n1": rapid.SliceOfDistinct(id, rapid.ID).Draw(t, "on n1")}),
		rapid.IntRange(0, 1000).Draw(t, "pods"), rapid.IntRange(0, 1000).Draw(t, "nodes"))
	l, err := reaper.DecodeLedger(data)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return l
}

// Promise 8. The shards of a ledger merge to the whole in any order, and each of them
// has at most the given size.
func TestShardsOfALedgerWithNodesAndFigures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLedger(t)
		size := rapid.IntRange(1, 12).Draw(t, "size")
		shards := l.Shards(size)
		if want := max(1, (l.Len()+size-1)/size); len(shards) != want {
			t.Errorf("%d entries in shards of %d: %d shards, want %d", l.Len(), size, len(shards), want)
		}
		var merged reaper.Ledger
		for _, s := range rapid.Permutation(shards).Draw(t, "order") {
			if s.Len() > size {
				t.Errorf("a shard of %d has %d entries", size, s.Len())
			}
			stored, err := reaper.DecodeLedger(s.Encode())
			if err != nil {
				t.Fatal(err)
			}
			merged = merged.Merge(stored)
		}
		if !merged.Equal(l) {
			t.Errorf("merged to %s, want %s", merged.Encode(), l.Encode())
		}
	})
}

// Promise 2. A merged ledger has all that either of the two has.
func TestMergedLedgerHasAllOfBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawLedger(t), drawLedger(t)
		ab := a.Merge(b)
		if !ab.Equal(b.Merge(a)) {
			t.Errorf("%s with %s depends on the order", a.Encode(), b.Encode())
		}
		if !ab.Merge(a).Equal(ab) || !ab.Merge(b).Equal(ab) || ab.Waiting() < max(a.Waiting(), b.Waiting()) {
			t.Errorf("%s with %s is %s", a.Encode(), b.Encode(), ab.Encode())
		}
	})
}

// Promise 2, 8. The ledger was edited by hand, cut short, or written by a newer
// version. The run warns, the grace periods begin again, and the run writes a whole
// ledger.
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
	h.ledgers.stored = []byte(`{"version":1,"seen":{},"figures":{"pods":9223372036854775807,"nodes":9223372036854775807}}`)
	_, err := reaper.Run(t.Context(), h.options())
	equal(t, "refused", limitError(t, err) != nil, true)
	equal(t, "store", contentsOf(t, m), before)
	h.change = func(o *reaper.Options) { o.IgnoreLimits = true }
	equal(t, "released after an operator looked", h.run(t).Summary.Released, 2)
}

// Promise 2. An edited ledger has an allocation on two nodes. It counts as on one of
// them.
func TestLedgerWithOneAllocationOnTwoNodes(t *testing.T) {
	l, err := reaper.DecodeLedger([]byte(`{"version":1,"seen":{},"nodes":{"n1":["x","x"],"n2":["x"],"":["y"]}}`))
	equal(t, "error", err, nil)
	again, err := reaper.DecodeLedger(l.Encode())
	equal(t, "error", err, nil)
	equal(t, "read again", again.Equal(l), true)
	equal(t, "remembered", l.Len(), 2)
}
