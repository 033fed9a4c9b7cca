package reaper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// loadLedger loads the ledger of earlier runs. It reports false if the stored ledger
// could not be read. Then it may be whole, and must not be replaced.
func (r *run) loadLedger(ctx context.Context) (ledger.Ledger, bool) {
	memory, err := r.Ledgers.Load(ctx)
	switch {
	case errors.Is(err, ledger.ErrDamaged):
		r.warn(err.Error() + "; every allocation counts as first seen now, and what the ledger knew of stores, nodes, hung pods and restored allocations is lost")
	case err != nil:
		r.failAndWarn(fmt.Errorf("load the ledger: %w", err))
		return ledger.Ledger{}, false
	}
	return memory.Salted(), true
}

// remembers reports whether the run stores what it finds.
func (r *run) remembers() bool { return !*r.Policy.DryRun || r.Remember }

// rememberPlan keeps what a dry run found: in the stored ledger if it remembers, and for
// the next round of the same run otherwise. With a wrong clock, it stores nothing.
func (r *run) rememberPlan(ctx context.Context, have ledger.Ledger, known bool, next func(ledger.Ledger) ledger.Ledger) {
	switch {
	case !r.Remember:
		r.memory = next(have)
	case known && r.checkClock() == nil:
		r.remains = r.saveLedger(ctx, have, r.endedBy(r.partial()), next) || r.remains
	}
}

// recall notes in the report whether its times outlast the run. If they do not, the next
// run begins every grace period again, and the report has no times. If an earlier run
// stored a ledger and this one did not, that applies to what has leaked since.
func (r *run) recall() {
	r.info.Memory, r.report.Run.Memory = r.remains, r.remains
	if r.remains {
		for i := range r.report.Entries {
			e, d := &r.report.Entries[i], &r.decisions[i]
			if e.Verdict == judge.Suspected && !d.KnownTo(r.stored) {
				e.FirstSeen, e.Due = nil, nil
			}
		}
		return
	}
	waiting := false
	for i := range r.report.Entries {
		e := &r.report.Entries[i]
		waiting = waiting || e.Verdict == judge.Suspected && r.isSelected(i)
		e.FirstSeen, e.Due = nil, nil
	}
	if waiting && *r.Policy.DryRun {
		repeated := "the CronJob"
		if r.Node != "" {
			repeated = "the DaemonSet or the timer"
		}
		where := ""
		if r.StateNamespace != "" {
			where = " in namespace " + r.StateNamespace
		}
		r.caveat("no ledger of an earlier run was read" + where + ", so every grace period begins with this run and no due times are known: " +
			"run with --remember, or let " + repeated + " run")
	}
}

// forget removes the released allocations from the ledger that was saved. If they come
// back, they are new.
func (r *run) forget(ctx context.Context, saved ledger.Ledger, plan judge.Plan) {
	var released []*ipam.Allocation
	for _, i := range plan.Due {
		if r.report.Entries[i].Outcome == report.Released {
			released = append(released, plan.Decisions[i].Allocation)
		}
	}
	if len(released) > 0 {
		r.saveLedger(ctx, saved, r.endedBy(r.partial()), func(have ledger.Ledger) ledger.Ledger { return have.Without(released, saved) })
	}
}

// saveLedger replaces the ledger with what next makes of it and with how the run is going. If
// another run wrote in between, next gets the ledger of that run. It warns of what does not fit.
// It reports whether the ledger is stored.
func (r *run) saveLedger(ctx context.Context, have ledger.Ledger, own ledger.Run, next func(ledger.Ledger) ledger.Ledger) bool {
	made := have
	left, err := saveLedger(ctx, r.Ledgers, have, func(theirs ledger.Ledger) ledger.Ledger {
		have, made = theirs, next(theirs).WithRun(own)
		return made
	})
	if errors.Is(err, ledger.ErrLeft) {
		r.warn(printable.Error(err))
		err = nil
	}
	switch {
	case err != nil && made.Equal(have): // all that a later run needs is stored
		r.Logger.Debug("the ledger does not have how the run goes", "err", printable.Error(err))
		return true
	case err != nil:
		r.failAndWarn(fmt.Errorf("save the ledger: %w", err))
		return false
	}
	r.stored, r.noted = made, own
	if left > 0 {
		r.warn(fmt.Sprintf("the ledger has room for %d entries, and %d were left out: their grace periods begin again, "+
			"and addresses whose node was forgotten are held while a node is not ready", made.Len()-left, left))
	}
	return true
}

// saveLedger is run.saveLedger without the report. It returns how many entries did not
// fit. With an error that wraps ledger.ErrLeft, the ledger is stored.
func saveLedger(ctx context.Context, ledgers ledger.Store, have ledger.Ledger, next func(ledger.Ledger) ledger.Ledger) (left int, err error) {
	b := retry.WithMaxRetries(3, retry.NewConstant(100*time.Millisecond))
	err = retry.Do(ctx, b, func(ctx context.Context) error {
		var want ledger.Ledger
		want, left = next(have).Fit(ledgers.Capacity())
		if want.Equal(have) && slices.Equal(want.Runs, have.Runs) {
			return nil
		}
		err := ledgers.Save(ctx, want)
		if !errors.Is(err, ipam.ErrAgain) || errors.Is(err, ledger.ErrLeft) {
			return err
		}
		theirs, loadErr := ledgers.Load(ctx)
		if loadErr != nil && !errors.Is(loadErr, ledger.ErrDamaged) {
			return loadErr
		}
		have = theirs.Salted()
		return retry.RetryableError(err)
	})
	return left, err
}
