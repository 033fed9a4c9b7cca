package reaper_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

// Promise 1. If a ledger has no room for all entries, it leaves out the nodes first. It keeps
// where pods hang and what was restored for as long as it can: without these, an address may
// be released too early.
func TestFullLedgerLeavesOutWhatMattersLeast(t *testing.T) {
	key := ledgertest.Key
	all := ledgertest.Ledger{
		Restored: map[string]int64{key("restored"): noon.Unix()},
		Seen:     map[string]int64{key("old"): 1000, key("new"): 2000},
		Graces:   map[string]int64{key("grace"): 60},
		Nodes:    map[string]string{key("hung"): "n1/boot", key("live"): "n1"},
		Figures:  ledgertest.Figures{Pods: 7},
	}
	drops := []func(){ // in their order
		func() { delete(all.Nodes, key("live")) },
		func() { delete(all.Graces, key("grace")) },
		func() { delete(all.Seen, key("new")) },
		func() { delete(all.Seen, key("old")) },
		func() { delete(all.Restored, key("restored")) },
		func() { delete(all.Nodes, key("hung")) },
	}
	h := newHarness()
	h.pods.Add(manyPods(7)...)
	h.ledgers.stored = all.Encode()
	for n := range len(drops) + 1 {
		h.ledgers.capacity = len(all.Encode())
		warnings := strings.Join(h.run(t).Warnings, "\n")
		equal(t, fmt.Sprintf("without %d", n), h.ledgers.text(t), textOf(ledgerOfForm(t, all)))
		equal(t, "warned of one", strings.Contains(warnings, ", and 1 were left out"), n > 0)
		if n < len(drops) {
			drops[n]()
		}
	}
}
