package reaper_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// totals returns the totals that the stored ledger has.
func (n *memoryLedgers) totals(t *testing.T) ledger.Totals {
	t.Helper()
	if n.stored == nil {
		return ledger.Totals{}
	}
	l, err := ledger.Decode(n.stored)
	equal(t, "error", err, nil)
	return l.Totals
}

// ranTwice are the totals of a run that released nothing, and of one that released two addresses
// and ended with a result.
func ranTwice(result string) *ledger.Totals {
	totals := &ledger.Totals{Released: map[string]uint64{"memory": 2}, Runs: map[string]uint64{"done": 1}}
	totals.Runs[result]++
	return totals
}

// The report has the totals of the stored ledger if these count the run, and otherwise none: they
// would be false. A run counts once, however often its end is written.
func TestTotalsCountARunIfTheyAreStored(t *testing.T) {
	nothing := &ledger.Totals{Runs: map[string]uint64{"done": 2}}
	ended := func(code int) func(error) (int, string) { return func(error) (int, string) { return code, "" } }
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *harness, *reaper.Options)
		want   *ledger.Totals // nil: the report has none, and those of the ledger do not change
	}{
		{"it released", nil, ranTwice("done")},
		{"it waited for nothing", func(_ *testing.T, h *harness, o *reaper.Options) { (&fakeSleep{}).attach(h); h.change(o) }, ranTwice("done")},
		{"nothing was due", func(_ *testing.T, h *harness, _ *reaper.Options) {
			h.pods.Add(podOn("", "gone-1"), podOn("", "gone-2"))
		}, nothing},
		{"a dry run that remembers", func(_ *testing.T, _ *harness, o *reaper.Options) { o.Policy.DryRun, o.Remember = new(true), true }, nothing},
		{"a dry run", func(_ *testing.T, _ *harness, o *reaper.Options) { o.Policy.DryRun = new(true) }, nil},
		{"another run has the lock", func(_ *testing.T, _ *harness, o *reaper.Options) { o.Lock = heldLock() }, nil},
		{"its selection names what does not exist", func(_ *testing.T, _ *harness, o *reaper.Options) { o.Selection.Pools = []string{"b"} }, nil},
		{"the ledger is of a newer version", func(_ *testing.T, h *harness, _ *reaper.Options) {
			h.ledgers.onLoad = func() error { return ledger.ErrNewer }
		}, nil},
		{"the ledger could not be saved", func(_ *testing.T, h *harness, _ *reaper.Options) {
			h.ledgers.onSave = func() error { return errForbidden }
		}, nil},
		{"a limit refused it", func(_ *testing.T, _ *harness, o *reaper.Options) {
			o.Policy.Limits.MaxReleases, o.Ending = new(1), ended(4)
		}, &ledger.Totals{Runs: map[string]uint64{"done": 1, "refused": 1}}},
		{"the pods could not be listed", func(_ *testing.T, h *harness, _ *reaper.Options) { h.pods.OnCall(failing(errForbidden, "list pods")) },
			&ledger.Totals{Runs: map[string]uint64{"done": 1, "failed": 1}}},
		{"it was interrupted", func(_ *testing.T, h *harness, o *reaper.Options) {
			o.Ending = ended(130)
			h.pods.OnCall(failing(context.Canceled, "list pods"))
		}, &ledger.Totals{Runs: map[string]uint64{"done": 1, "interrupted": 1}}},
		{"it did not learn that its end was written", func(_ *testing.T, h *harness, _ *reaper.Options) {
			h.ledgers.lose = func(l ledger.Ledger) bool { return l.Runs[1].Released > 0 }
		}, ranTwice("done")},
		{"and the ledger could not be written for long", func(_ *testing.T, h *harness, _ *reaper.Options) {
			saves := 0
			h.ledgers.lose = func(l ledger.Ledger) bool { saves++; return l.Runs[1].Released > 0 && saves < 5 }
		}, ranTwice("done")},
		{"another client wrote meanwhile", func(_ *testing.T, h *harness, _ *reaper.Options) {
			conflicts := 2
			h.ledgers.onSave = func() error {
				if conflicts--; conflicts < 0 {
					return nil
				}
				return fmt.Errorf("%w: conflict", ipam.ErrAgain)
			}
		}, ranTwice("done")},
		{"the ledger has no room for its entries", func(_ *testing.T, h *harness, _ *reaper.Options) { h.ledgers.capacity = 150 }, ranTwice("done")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, m := memoryHarness(t, "live-1")
				h.policy.Limits.MaxFraction = new(1.0)
				equal(t, "totals of the first run", h.run(t).Totals, &ledger.Totals{Runs: map[string]uint64{"done": 1}}, cmpopts.EquateEmpty())
				before := h.ledgers.totals(t)
				h.addPods(t, m, "gone-1", "gone-2")
				o := h.options()
				o.ID = "run-2"
				if tt.change != nil {
					tt.change(t, h, &o)
				}
				rep, _ := reaper.Run(t.Context(), o)
				equal(t, "totals of the report", rep.Totals, tt.want, cmpopts.EquateEmpty())
				if tt.want == nil {
					tt.want = &before
				}
				equal(t, "totals of the ledger", h.ledgers.totals(t), *tt.want, cmpopts.EquateEmpty())
			})
		})
	}
}

// A run that waits counts what all of its rounds released, when it ends.
func TestTotalsCountAllRoundsOfARun(t *testing.T) {
	h, _ := waitingHarness(t)
	shortenGrace(h, 5*time.Minute)
	var during []ledger.Totals
	(&fakeSleep{onSleep: func(int) error {
		during = append(during, h.ledgers.totals(t))
		return nil
	}}).attach(h)
	rep := h.run(t)
	equal(t, "during the run", during, []ledger.Totals{{}, {}})
	equal(t, "totals", rep.Totals, &ledger.Totals{Released: map[string]uint64{"memory": 2}, Runs: map[string]uint64{"done": 1}})
}

// A run that is killed after it released something counts nowhere, and the next one counts itself.
func TestKilledRunIsNotInTheTotals(t *testing.T) {
	h, m := memoryHarness(t, "live-1", "gone-1", "gone-2")
	h.policy.Limits.MaxFraction = new(1.0)
	var killed []byte // the ledger at the moment
	h.ledgers.onSave = func() error {
		killed = h.ledgers.stored
		return nil
	}
	h.run(t)
	h.ledgers.onSave, h.ledgers.stored = nil, killed
	h.change = func(o *reaper.Options) { o.ID = "run-2" }
	h.addPods(t, m, "gone-3")
	equal(t, "totals", h.run(t).Totals, &ledger.Totals{Released: map[string]uint64{"memory": 1}, Runs: map[string]uint64{"done": 1}})
}

// Promise 2. Two ledgers that differ in their totals alone make runs that differ in nothing else.
func TestTotalsDecideNothing(t *testing.T) {
	type result struct {
		Entries []report.Entry
		Summary report.Counts
		Left    any
		Ledger  string
	}
	var results []result
	for _, most := range []uint64{0, 1, math.MaxUint64} {
		h, m := waitingHarness(t)
		h.run(t)
		l, err := ledgertest.Decode(h.ledgers.stored)
		equal(t, "error", err, nil)
		l.Salt = [16]byte{1}
		for _, totals := range []*map[string]uint64{&l.TotalReleased, &l.TotalRuns} {
			*totals = map[string]uint64{"memory": most, "done": most, "failed": most, "no backend": most}
		}
		h.ledgers.stored = l.Encode()
		h.now, h.change = noon.Add(15*time.Minute), func(o *reaper.Options) { o.ID = "run-2" }
		rep := h.run(t)
		results = append(results, result{rep.Entries, rep.Summary, contentsOf(t, m), h.ledgers.text(t)})
	}
	for _, other := range results[1:] {
		equal(t, "run", other, results[0])
	}
}

// An address of several stores counts once, for the first of them, and the totals are those of the
// report's own figure.
func TestAddressOfSeveralStoresCountsOnce(t *testing.T) {
	first, second := backendtest.NewMemory("memory"), backendtest.NewMemory("second")
	h := newHarness(first.Backend(), second.Backend())
	h.policy.Limits.MaxFraction = new(1.0)
	h.policy.GracePeriod = &policy.Duration{}
	h.pods.Add(podOn("", "live-1"))
	h.addPods(t, first, "gone-1", "gone-2")
	h.addPods(t, second, "gone-1")
	h.addPods(t, first, "waits")
	h.policy.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"waits"}}, GracePeriod: &policy.Duration{Duration: time.Hour}}}
	rep := h.run(t)
	equal(t, "leaked", rep.Leaked.Total, 3)
	equal(t, "allocations", rep.Summary.Released, 3)
	equal(t, "addresses", rep.Leaked.Released, 2)
	equal(t, "totals", rep.Totals.Released, map[string]uint64{"memory": 2})
}
