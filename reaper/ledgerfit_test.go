package reaper_test

import (
	"fmt"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

// Promise 1. If a ledger has no room for all entries, it leaves out the nodes first. It keeps
// where pods hang and what was restored for as long as it can: without these, an address may
// be released too early.
func TestFullLedgerLeavesOutWhatMattersLeast(t *testing.T) {
	key := ledgertest.Key
	all := ledgertest.Ledger{
		Restored: map[string]int64{key("restored"): 900},
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
	l := ledgerOfForm(t, all)
	for n := range len(drops) + 1 {
		got, left := l.Fit(len(all.Encode()))
		equal(t, fmt.Sprintf("without %d", n), textOf(got), textOf(ledgerOfForm(t, all)))
		equal(t, "left out", left, n)
		if n < len(drops) {
			drops[n]()
		}
	}
}
