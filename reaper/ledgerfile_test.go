package reaper_test

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

// Equal ledgers have equal forms, and the tests' reader of the form agrees with the program's.
func TestEqualLedgersHaveEqualForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLedger(t)
		again, err := ledger.Decode(l.Encode())
		if err != nil || !again.Equal(l) || !bytes.Equal(again.Encode(), l.Encode()) {
			t.Errorf("%s is read as %s, %v", textOf(l), textOf(again), err)
		}
		if form, err := ledgertest.Decode(l.Encode()); err != nil || !bytes.Equal(form.Encode(), l.Encode()) {
			t.Errorf("%s has a form that the tests write as %+v, %v", textOf(l), form, err)
		}
		if other := drawLedger(t); bytes.Equal(other.Encode(), l.Encode()) != other.Equal(l) {
			t.Errorf("%s and %s: forms and ledgers differ", textOf(l), textOf(other))
		}
	})
}

// drawLedger draws a ledger with all that a ledger can have.
func drawLedger(t *rapid.T) ledger.Ledger {
	id := rapid.Map(rapid.StringMatching(`[a-d]{1,2}`), func(name string) string {
		key := ledgertest.Key(name)
		return fmt.Sprintf("%08x", len(name)) + key[8:] // of two backends
	})
	times := rapid.MapOfN(id, rapid.Int64Range(0, 1<<37), 0, 20)
	figures := rapid.Int64Range(0, 1000)
	return ledgerOfForm(t, ledgertest.Ledger{
		Seen: times.Draw(t, "seen"), Restored: times.Draw(t, "restored"),
		Graces:  rapid.MapOfN(id, rapid.Int64Range(1, 1<<20), 0, 20).Draw(t, "graces"),
		Nodes:   rapid.MapOfN(id, rapid.SampledFrom([]string{"n1", "n2", "n10"}), 0, 20).Draw(t, "nodes"),
		Figures: ledgertest.Figures{Pods: figures.Draw(t, "pods"), Nodes: figures.Draw(t, "nodes")},
	})
}

// Promise 2. Impossible figures make runs refuse until an operator looks.
func TestImpossibleFiguresRefuse(t *testing.T) {
	h, m := waitingHarness(t)
	h.policy = backendtest.Impatient()
	before := contentsOf(t, m)
	h.ledgers.put(t, `{"seen":{},"figures":{"pods":9223372036854775807,"nodes":9223372036854775807}}`)
	_, err := reaper.Run(t.Context(), h.options())
	equal(t, "refused", limitError(t, err) != nil, true)
	equal(t, "store", contentsOf(t, m), before)
	h.change = func(o *reaper.Options) { o.IgnoreLimits = true }
	equal(t, "released after an operator looked", h.run(t).Summary.Released, 2)
}

// One ConfigMap has room for the nodes of 100,000 pods, on 1,000 nodes, and for the times of
// each tenth.
func TestLedgerOf110000EntriesFitsInOneConfigMap(t *testing.T) {
	form := ledgertest.Ledger{Seen: make(map[string]int64), Nodes: make(map[string]string)}
	for i := range 100_000 {
		key := ledgertest.Key(fmt.Sprint(i))
		form.Nodes[key] = fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i%1000/250, i%250)
		if i%10 == 0 {
			form.Seen[key] = 1_790_000_000 + int64(i)
		}
	}
	l := ledgerOfForm(t, form)
	if size := len(l.Encode()); l.Len() != 110_000 || size > 1020<<10 {
		t.Errorf("%d entries have %d bytes, want at most 1020 KiB", l.Len(), size)
	}
}
