package ledger_test

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

// resultOf has the words for the exit codes of the program.
var resultOf = map[int]string{0: "done", 1: "failed", 2: "failed", 3: "partial", 4: "refused", 130: "interrupted"}

// Each run counts once, whatever is stored between its writes: it goes on, it writes its end again
// because the answer to the first write was lost, other runs end, and the ledger is stored, merged,
// made anew, or full.
func TestEachRunCountsOnceInTheTotals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLedger(t)
		form := formOf(t, l)
		form.TotalReleased, form.TotalRuns, form.Runs = map[string]uint64{}, map[string]uint64{}, nil
		l = ledgerOfForm(t, form)
		counted := make(map[string]bool)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			run := ledger.Run{ID: fmt.Sprint("run-", rapid.IntRange(1, ledger.MaxRuns).Draw(t, "run"))}
			switch rapid.SampledFrom([]string{"begins", "ends", "store", "merge", "build", "fit"}).Draw(t, "step") {
			case "begins":
				if !counted[run.ID] {
					l = l.WithRun(run, map[string]uint64{"calico": 1000})
				}
			case "ends":
				run.Ended, run.ExitCode = true, rapid.SampledFrom([]int{0, 1, 2, 3, 4, 130}).Draw(t, "exit code")
				freed := rapid.MapOfN(rapid.SampledFrom([]string{"calico", "whereabouts"}), rapid.Uint64Max(100), 0, 2).Draw(t, "freed")
				l = l.WithRun(run, freed)
				if !counted[run.ID] {
					counted[run.ID] = true
					form.TotalRuns[resultOf[run.ExitCode]]++
					for backend, n := range freed {
						form.TotalReleased[backend] += n
					}
				}
			case "store":
				l = ledgerOfForm(t, formOf(t, l))
			case "merge":
				other := formOf(t, drawLedger(t))
				other.Salt = formOf(t, l).Salt
				l = l.Merge(ledgerOfForm(t, other))
			case "build":
				l = ledger.NewBuilder(l.Salted()).Ledger()
			case "fit":
				l, _ = l.Fit(rapid.IntRange(0, len(l.Encode())).Draw(t, "capacity"))
			}
		}
		got := formOf(t, l)
		if !maps.Equal(got.TotalRuns, form.TotalRuns) || !maps.Equal(got.TotalReleased, form.TotalReleased) {
			t.Errorf("totals %v and %v, want %v and %v", got.TotalRuns, got.TotalReleased, form.TotalRuns, form.TotalReleased)
		}
	})
}

// A ledger is a value: the totals of the one before stay, for a write that has to be made again.
func TestTotalsOfTheLedgerBeforeStay(t *testing.T) {
	ended := func(l ledger.Ledger, id string) ledger.Ledger {
		return l.WithRun(ledger.Run{ID: id, Ended: true}, map[string]uint64{"calico": 3})
	}
	before := ended(ledger.Ledger{}, "run-1")
	for range 2 {
		ended(before, "run-2")
	}
	equal(t, "totals", before.Totals, ledger.Totals{Released: map[string]uint64{"calico": 3}, Runs: map[string]uint64{"done": 1}})
}

// A total that is as large as it can be does not damage the ledger when it grows.
func TestLargestTotalIsNoDamage(t *testing.T) {
	l := ledgerOfForm(t, ledgertest.Ledger{TotalRuns: map[string]uint64{"done": math.MaxUint64}})
	l = l.WithRun(ledger.Run{ID: "run-1", Ended: true}, nil)
	equal(t, "totals", formOf(t, l).TotalRuns, map[string]uint64{"done": 0})
	ledgerOfForm(t, formOf(t, l))
}
