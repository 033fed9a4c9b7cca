package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// runs returns the runs that the stored ledger has.
func (n *memoryLedgers) runs(t *testing.T) []ledger.Run {
	t.Helper()
	if n.stored == nil {
		return nil
	}
	l, err := ledger.Decode(n.stored)
	if err != nil {
		t.Fatal(err)
	}
	return l.Runs
}

// The ledger has how a run ended, and a run that succeeds writes it once more only if it
// released something.
func TestLedgerHasHowARunEnded(t *testing.T) {
	own := func(change func(*ledger.Run)) []ledger.Run {
		r := ledger.Run{ID: "run-1", Began: noon.Unix(), Ended: true, Due: 2}
		change(&r)
		return []ledger.Run{r}
	}
	failed := func(code int, text string) func(*ledger.Run) {
		return func(r *ledger.Run) { r.Due, r.ExitCode, r.Error = 0, code, text }
	}
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *harness, *reaper.Options)
		want   []ledger.Run
		saves  int
	}{
		{"it released", nil, own(func(r *ledger.Run) { r.Released = 2 }), 2},
		{"nothing was due", func(_ *testing.T, h *harness, _ *reaper.Options) {
			h.pods.Add(podOn("", "gone-1"), podOn("", "gone-2"))
		},
			own(failed(0, "")), 1},
		{"a dry run that remembers", func(_ *testing.T, _ *harness, o *reaper.Options) { o.Policy.DryRun, o.Remember = new(true), true },
			own(func(r *ledger.Run) { r.DryRun = true }), 1},
		{"a dry run", func(_ *testing.T, _ *harness, o *reaper.Options) { o.Policy.DryRun = new(true) }, nil, 0},
		{"a limit refused it", func(_ *testing.T, _ *harness, o *reaper.Options) { o.Policy.Limits.MaxReleases = new(1) },
			own(func(r *ledger.Run) {
				r.ExitCode, r.Error = 1, "limits.maxReleases: the plan would release 2 of 3 allocations, more than the allowed 1; nothing was released"
			}), 1},
		{"the pods could not be listed", func(_ *testing.T, h *harness, _ *reaper.Options) { h.pods.OnCall(failing(errForbidden, "list pods")) },
			own(failed(1, "census: list pods: "+errForbidden.Error())), 1},
		{"the clock is wrong", func(_ *testing.T, _ *harness, o *reaper.Options) {
			o.ClockSkew = func() (time.Duration, bool) { return time.Hour, true }
		}, own(func(r *ledger.Run) {
			r.ExitCode, r.Error = 1, "the clock here is 1h0m0s ahead of the API server's: nothing is released until they differ by at most 9s"
		}), 1},
		{"the journal could not be written", func(_ *testing.T, h *harness, _ *reaper.Options) {
			h.journal.OnWrite(func() error { return errForbidden })
		}, own(func(r *ledger.Run) {
			r.ExitCode, r.Error = 1, "nothing is released without a journal: "+errForbidden.Error()
		}), 2},
		{"its selection names what does not exist", func(_ *testing.T, _ *harness, o *reaper.Options) { o.Selection.Pools = []string{"b"} }, nil, 0},
		{"another run has the lock", func(_ *testing.T, _ *harness, o *reaper.Options) {
			o.Lock = heldLock()
		}, nil, 0},
		{"the ledger is of a newer version", func(_ *testing.T, h *harness, _ *reaper.Options) {
			h.ledgers.onLoad = func() error { return ledger.ErrNewer }
		}, nil, 0},
		{"it was interrupted", func(_ *testing.T, h *harness, o *reaper.Options) {
			o.Ending = func(error) (int, string) { return 130, "interrupted" }
			h.pods.OnCall(failing(context.Canceled, "list pods"))
		}, own(failed(130, "interrupted")), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := memoryHarness(t, "live-1", "gone-1", "gone-2")
			h.policy.Limits.MaxFraction = new(1.0)
			o := h.options()
			if tt.change != nil {
				tt.change(t, h, &o)
			}
			_, _ = reaper.Run(t.Context(), o)
			equal(t, "runs", h.ledgers.runs(t), tt.want)
			equal(t, "writes of the ledger", h.ledgers.saves, tt.saves)
		})
	}
}

// A run that is killed during its releases has not ended.
func TestRunThatGoesOnHasNotEnded(t *testing.T) {
	h, m := memoryHarness(t, "live-1", "gone-1", "gone-2")
	h.policy.Limits.MaxFraction = new(1.0)
	var during []ledger.Run
	m.OnRequest(func(request string) error {
		if strings.HasPrefix(request, "release") {
			during = h.ledgers.runs(t)
		}
		return nil
	})
	h.run(t)
	equal(t, "runs during the release", during, []ledger.Run{{ID: "run-1", Began: noon.Unix(), Due: 2}})
}

// An end that could not be saved with the ledger is saved alone, if that is possible by then.
func TestEndOfARunIsSavedAlone(t *testing.T) {
	h, _ := memoryHarness(t, "live-1", "gone-1")
	h.policy.DryRun = new(true)
	h.change = func(o *reaper.Options) { o.Remember = true }
	h.ledgers.onSave = func() error {
		h.ledgers.onSave = nil
		return errForbidden
	}
	h.partial(t)
	equal(t, "error", h.ledgers.runs(t)[0].Error, "save the ledger: "+errForbidden.Error())
	equal(t, "ledger", h.ledgers.text(t), `{"seen":{}}`)
}

// The ledger has the last runs, and each once.
func TestLedgerHasTheLastRuns(t *testing.T) {
	h, _ := memoryHarness(t, "live-1")
	for n := range ledger.MaxRuns + 3 {
		h.pods.OnCall(nil)
		if n%2 == 0 {
			h.pods.OnCall(failing(errors.New(strings.Repeat("no answer ", 100)), "list pods"))
		}
		o := h.options()
		o.ID = fmt.Sprint("run-", n)
		_, err := reaper.Run(t.Context(), o)
		equal(t, "failed", err != nil, n%2 == 0)
	}
	runs := h.ledgers.runs(t)
	equal(t, "runs", len(runs), ledger.MaxRuns)
	equal(t, "the first", runs[0].ID, "run-3")
	equal(t, "the last", runs[ledger.MaxRuns-1].ID, "run-22")
	equal(t, "size of an error", len(runs[1].Error), ledger.MaxRunText)
	l, err := ledger.Decode(h.ledgers.stored)
	equal(t, "error", err, nil)
	if size := len(l.Encode()); size > 6<<10 {
		t.Errorf("the runs have %d bytes", size)
	}
}

// Due times outlast a run if another one stored some. That a run failed is not such memory.
func TestRunThatFailedIsNoMemoryOfTimes(t *testing.T) {
	h, _ := waitingHarness(t)
	h.pods.OnCall(failing(errForbidden, "list pods"))
	_, _ = reaper.Run(t.Context(), h.options())
	equal(t, "runs", len(h.ledgers.runs(t)), 1)
	h.pods.OnCall(nil)
	h.policy.DryRun = new(true)
	equal(t, "memory", h.run(t).Run.Memory, false)
}

// A run that remembers nothing new failed to save. Its end is saved alone.
func TestEndOfARunThatRemembersNothingNewIsSavedAlone(t *testing.T) {
	h, _ := memoryHarness(t, "live-1")
	h.run(t)
	h.ledgers.onSave = func() error {
		h.ledgers.onSave = nil
		return errForbidden
	}
	h.change = func(o *reaper.Options) { o.ID = "run-2" }
	h.run(t)
	equal(t, "runs", len(h.ledgers.runs(t)), 2)
}

// A ledger is full. How a run ended pushes nothing out of it: the next run would not know, and
// no report would say so.
func TestEndOfARunLeavesOutNothing(t *testing.T) {
	h, m := memoryHarness(t, "live-1")
	for i := range 200 {
		h.addPods(t, m, fmt.Sprint("gone-", i))
	}
	h.policy.GracePeriod, h.policy.Limits.MaxFraction = policy.Default().GracePeriod, new(1.0)
	h.run(t)
	h.ledgers.capacity = len(h.ledgers.stored)
	before, err := ledger.Decode(h.ledgers.stored)
	equal(t, "error", err, nil)
	h.pods.OnCall(failing(errForbidden, "list pods"))
	h.change = func(o *reaper.Options) { o.ID = "run-2" }
	rep, _ := reaper.Run(t.Context(), h.options())
	after, err := ledger.Decode(h.ledgers.stored)
	equal(t, "error", err, nil)
	equal(t, "entries", after.Len(), before.Len())
	equal(t, "totals, which do not count the run", rep.Totals, nil)
}

// The ledger is damaged when a run notes its end. It is not replaced by an empty one, which no
// report would mention.
func TestEndOfARunReplacesNoDamagedLedger(t *testing.T) {
	h, _ := waitingHarness(t)
	h.run(t)
	h.pods.OnCall(failing(errForbidden, "list pods"))
	h.ledgers.onSave = func() error {
		h.ledgers.onSave = nil
		h.ledgers.stored = []byte("damaged")
		return fmt.Errorf("another client wrote it: %w", ipam.ErrAgain)
	}
	_, _ = reaper.Run(t.Context(), h.options())
	equal(t, "ledger", string(h.ledgers.stored), "damaged")
}

// A restore is a run of the history. It is there from its first write on, however it ends.
func TestLedgerHasHowARestoreEnded(t *testing.T) {
	second := netip.MustParseAddr("10.0.0.2")
	own := func(counts ledger.Restore, change ...func(*ledger.Run)) []ledger.Run {
		r := ledger.Run{ID: "restore-1", By: "user me", Began: noon.Unix(), Ended: true, RestoreOf: "run-1", Restore: counts}
		for _, c := range change {
			c(&r)
		}
		return []ledger.Run{r}
	}
	failed := func(code int, text string) func(*ledger.Run) {
		return func(r *ledger.Run) { r.ExitCode, r.Error = code, text }
	}
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *releasedHarness, *reaper.RestoreOptions)
		want   []ledger.Run
	}{
		{"all is put back", nil, own(ledger.Restore{Restored: 3})},
		{"some is there, and some has another owner", func(t *testing.T, r *releasedHarness, _ *reaper.RestoreOptions) {
			r.restore(t, func(o *reaper.RestoreOptions) { o.Selection.Addresses = []netip.Addr{second} })
			equal(t, "error", r.two.Free("a", app("gone-3")), nil)
			r.pods.Add(podOn("", "other", ipam.Allocation{IP: second.Next()}))
		}, own(ledger.Restore{Restored: 1, Present: 1, Taken: 1},
			failed(1, "1 allocation cannot be put back: taken by now; restore again once their owners have ended"))},
		{"a part of it", func(_ *testing.T, _ *releasedHarness, o *reaper.RestoreOptions) {
			o.Selection.Pools, o.Selection.Addresses = []string{"a"}, []netip.Addr{second, netip.MustParseAddr("10.0.0.9")}
		}, own(ledger.Restore{Restored: 1}, func(r *ledger.Run) { r.Selection = "pool a, address 10.0.0.2 or 10.0.0.9" })},
		{"the pods could not be listed", func(_ *testing.T, r *releasedHarness, _ *reaper.RestoreOptions) {
			r.pods.OnCall(failing(errForbidden, "list pods"))
		}, own(ledger.Restore{Failed: 3}, failed(1, "census: list pods: "+errForbidden.Error()))},
		{"it was interrupted", func(_ *testing.T, r *releasedHarness, o *reaper.RestoreOptions) {
			o.Ending = func(error) (int, string) { return 130, "interrupted" }
			r.pods.OnCall(failing(context.Canceled, "list pods"))
		}, own(ledger.Restore{Failed: 3}, failed(130, "interrupted"))},
		{"a dry run", func(_ *testing.T, _ *releasedHarness, o *reaper.RestoreOptions) { o.DryRun = true }, nil},
		{"a run has the lock", func(_ *testing.T, _ *releasedHarness, o *reaper.RestoreOptions) { o.Lock = heldLock() }, nil},
		{"its selection names what does not exist", func(_ *testing.T, _ *releasedHarness, o *reaper.RestoreOptions) {
			o.Selection.Pools = []string{"b"}
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReleasedHarness(t)
			o := r.restoreOptions(func(o *reaper.RestoreOptions) { o.By, o.Ledgers = "user me", r.ledgers })
			if tt.change != nil {
				tt.change(t, r, &o)
			}
			r.ledgers.stored = nil
			_, _ = reaper.Restore(t.Context(), o)
			equal(t, "runs", r.ledgers.runs(t), tt.want)
		})
	}
}

// Two stores hold one address. The history counts it once, as the report of the run does.
func TestLedgerCountsAddressesAsTheReportDoes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		stopped bool // before the release in the second store
		want    ledger.Run
	}{
		{"released", false, ledger.Run{Due: 1, Released: 1}},
		{"stopped between its releases", true, ledger.Run{Due: 1, NotBegun: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			one, two := backendtest.NewMemory("one"), backendtest.NewMemory("two")
			h := newHarness(one.Backend(), two.Backend())
			h.addPods(t, one, "live-1", "gone-1")
			h.addPods(t, two, "live-1", "gone-1")
			one.OnRequest(func(request string) error {
				if tt.stopped && strings.HasPrefix(request, "release") {
					cancel()
				}
				return nil
			})
			rep, _ := reaper.Run(ctx, h.options())
			got := h.ledgers.runs(t)[0]
			equal(t, "figures", ledger.Run{Due: got.Due, Released: got.Released, NotBegun: got.NotBegun}, tt.want)
			equal(t, "freed by the report", got.Released, rep.Freed())
			equal(t, "allocations", rep.Summary.Released+rep.Summary.NotBegun, 2)
		})
	}
}
