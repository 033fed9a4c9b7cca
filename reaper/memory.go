package reaper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// remembers reports whether the run stores what it finds.
func (o Options) remembers() bool { return !*o.Policy.DryRun || o.Remember }

// saveVerdicts saves the ledger that the verdicts of a round make, and returns it. A run beside this
// one may have found another store: then it returns the ledger of that run, as it is.
func (r *run) saveVerdicts(ctx context.Context, n round) ledger.Ledger {
	own := r.endedBy(r.partial())
	own.Ended = own.Ended && len(undecided(n.attempts)) == 0
	made := n.ledger
	stored := r.saveLedger(ctx, n.ledger, own, func(have ledger.Ledger) ledger.Ledger {
		made = have
		if r.guard != nil && !have.Equal(n.ledger) { // the plan does not know of it
			r.guard.newer = &have
		}
		if r.AcceptNewStore || len(otherStores(n.inventory, have)) == 0 {
			made = r.nextLedger(n, have)
		}
		return made
	})
	r.lasts = r.lasts || stored
	return made
}

// nextLedger returns the ledger after the verdicts of a round. If another run wrote in between, they
// are made again with what that run remembers.
func (r *run) nextLedger(n round, have ledger.Ledger) ledger.Ledger {
	verdicts := n.verdicts
	if !have.Equal(n.ledger) {
		verdicts = r.judge(r.Now().UTC(), r.Policy, n.stock, have) // a restore may have been since
	}
	return judge.NextLedger(have, verdicts, n.census, n.inventory, n.now.Add(-r.Policy.Journal.RestoreHold.Duration))
}

// saveDoubt remembers a census that is not believed, and since when the figures have been
// that low. If the census is believed and only the plan is over a limit, there is no
// doubt any more. Nothing else is remembered of such a run, except which pods hang.
func (r *run) saveDoubt(ctx context.Context, n round, refusal error) {
	var limit *judge.LimitError
	if !errors.As(refusal, &limit) || !n.ledgerRead || !r.remembers() || r.checkClock() != nil {
		return
	}
	r.saveLedger(ctx, n.ledger, r.endedBy(refusal), func(have ledger.Ledger) ledger.Ledger {
		switch {
		case judge.Dropped(n.census, have.Figures, r.Policy.Limits) == nil:
			have.Doubt = ledger.Doubt{}
		case have.Doubt.At == 0 || judge.Dropped(n.census, have.Doubt.Figures, r.Policy.Limits) != nil:
			have.Doubt = ledger.Doubt{Figures: n.census.Figures(), At: ledger.ToSecond(n.now).Unix()}
		}
		return judge.WithHung(have, n.verdicts)
	})
}

// forgetReleased removes the released allocations from the ledger that was saved, or that others have
// saved since. If they come back, they are new.
func (r *run) forgetReleased(ctx context.Context, saved ledger.Ledger, attempts []*attempt) {
	var released []*ipam.Allocation
	for _, a := range attempts {
		if a.released() {
			released = append(released, a.allocation())
		}
	}
	if len(released) > 0 {
		r.saveLedger(ctx, r.guard.stored(saved), r.endedBy(r.partial()), func(have ledger.Ledger) ledger.Ledger { return have.Without(released, saved) })
	}
}

// warnOfAges says of a dry run with another grace period that it cannot know when that began.
func (r *run) warnOfAges() {
	waits := func(d judge.Decision) bool { return d.Verdict == judge.Suspected }
	if r.lasts || !r.round.ledgerRead || r.Files != nil || !strings.Contains(r.Overrides, "--grace-period") || !slices.ContainsFunc(r.round.selectedDecisions(), waits) {
		return
	}
	r.caveat("without a ledger, --grace-period cannot know how long an address has leaked: a run with --remember begins one, and one with --wait looks twice")
}

// saveLedger replaces the ledger with what next makes of it and with how the run is going. If
// another run wrote in between, next gets the ledger of that run. It warns of what does not fit.
// It reports whether the ledger is stored.
func (r *run) saveLedger(ctx context.Context, have ledger.Ledger, own ledger.Run, next func(ledger.Ledger) ledger.Ledger) bool {
	made, freed := have, r.freed(own)
	left, err := saveLedger(ctx, r.Ledgers, have, func(theirs ledger.Ledger) ledger.Ledger {
		have, made = theirs, next(theirs).WithRun(own, freed).WithUse(r.use())
		return made
	})
	switch {
	case err != nil && made.Equal(have): // all that a later run needs is stored
		r.logger.Debug("the ledger does not have how the run goes", "err", printable.Error(err))
		return true
	case err != nil:
		r.info.Unsaved = true
		r.failAndWarn(fmt.Errorf("save the ledger: %w", err))
		return false
	}
	r.stored, r.saved = made, own
	if left > 0 {
		r.warn(fmt.Sprintf("the ledger has room for %d entries, and %d were left out: their grace periods begin again, "+
			"and addresses whose node was forgotten are held while a node is not ready", made.Len()-left, left))
	}
	return true
}

// saveLedger is run.saveLedger without the report. It returns how many entries did not
// fit.
func saveLedger(ctx context.Context, ledgers ledger.Store, have ledger.Ledger, next func(ledger.Ledger) ledger.Ledger) (left int, err error) {
	b := retry.WithMaxRetries(3, retry.NewConstant(100*time.Millisecond))
	err = retry.Do(ctx, b, func(ctx context.Context) error {
		var want ledger.Ledger
		want, left = next(have).Fit(ledgers.Capacity())
		if want.Equal(have) && slices.Equal(want.Runs, have.Runs) {
			return nil
		}
		err := ledgers.Save(ctx, want)
		if !errors.Is(err, ipam.ErrAgain) {
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

// endTimeout limits how long a run may take to save its end.
const endTimeout = 5 * time.Second

// saveEnd records in the ledger how the run ended, even if it was interrupted. It writes nothing if
// the last save of the ledger said the same, as in a run that succeeds and releases nothing. After
// a mistake of the user in a selection, the run wrote nothing, and saveEnd does not either. Nor does it
// write to a ledger that has no room for it, or is damaged.
func (r *run) saveEnd(ctx context.Context, err error) {
	var mistake *ipam.InputError
	if !r.remembers() || errors.As(err, &mistake) && !errors.Is(err, ErrAnotherStore) {
		return
	}
	own := r.endedBy(err)
	own.Ended = true
	if own == r.saved {
		return
	}
	freed := r.freed(own)
	ended := func(have ledger.Ledger) ledger.Ledger { return have.WithRun(own, freed) }
	if have, saved := saveEnd(ctx, r.Ledgers, ended, r.logger); saved {
		r.stored, r.saved = have, own
	}
}

// saveEnd is run.saveEnd for a run that has something to save, or a restore: ended returns the ledger with
// its end. saveEnd returns the stored ledger, if that has the end now.
func saveEnd(ctx context.Context, store ledger.Store, ended func(ledger.Ledger) ledger.Ledger, log *slog.Logger) (have ledger.Ledger, saved bool) {
	ctx, cancel := ipam.Finish(ctx, endTimeout)
	defer cancel()
	ledgers := undamaged{store}
	have, err := ledgers.Load(ctx)
	fits := true
	if err == nil {
		_, err = saveLedger(ctx, ledgers, have.Salted(), func(theirs ledger.Ledger) ledger.Ledger {
			have = ended(theirs)
			_, left := have.Fit(ledgers.Capacity())
			if fits = left == 0; !fits {
				return theirs // what verdicts rest on is worth more
			}
			return have
		})
	}
	if err != nil {
		log.Debug("the ledger does not have how the run ended", "err", printable.Error(err))
	}
	return have, err == nil && fits
}

// freed counts the addresses that the run freed, by backend, if it has ended.
func (r *run) freed(own ledger.Run) map[string]uint64 {
	if own.Released == 0 || !own.Ended {
		return nil // a report costs time
	}
	freed := make(map[string]uint64)
	for backend, n := range r.report().LeakedBy(func(e report.Entry) string { return e.Backend }) {
		freed[backend] = uint64(n.Released)
	}
	return freed
}

// use counts the addresses of networks without what the run released.
func (r *run) use() ledger.Use {
	gone := make(map[ipam.PoolRef]int)
	for _, a := range r.round.attempts {
		if a.released() {
			gone[ipam.PoolRef{Backend: a.allocation().Backend, Name: a.allocation().Pool}]++
		}
	}
	return ledger.Use{At: r.info.StartedAt.Unix(), Used: r.round.layout.Used(gone)}
}

// undamaged is a store whose ledger must not be replaced if it is damaged: the next run reports
// the damage.
type undamaged struct{ ledger.Store }

// Load implements ledger.Store. After any error, the ledger may be whole.
func (u undamaged) Load(ctx context.Context) (ledger.Ledger, error) {
	have, err := u.Store.Load(ctx)
	if errors.Is(err, ledger.ErrDamaged) {
		err = errors.New(err.Error())
	}
	return have, err
}

// endedBy returns the run as the ledger has it if it ends now with this error. A run that may wait
// for grace periods has not ended.
func (r *run) endedBy(err error) ledger.Run {
	outcomes := make(map[int]report.Fate, len(r.round.attempts))
	for _, a := range r.round.attempts {
		outcomes[a.index] = a.outcome
	}
	planned := func(i int) bool {
		_, due := slices.BinarySearch(r.round.plan.Due, i)
		return due
	}
	released := func(i int) bool { return outcomes[i] == report.Released }
	left := func(i int) bool { return released(i) || outcomes[i] == report.NotBegun }
	counts := report.CountFreed(r.round.verdicts, r.earlier.released, planned, released, left)
	own := ledger.Run{
		ID: r.info.ID, Began: r.info.StartedAt.Unix(), By: shortened(r.By), DryRun: r.info.DryRun, Ended: r.Sleep == nil,
		Selection: shortened(r.Selection.String()), Overrides: shortened(r.Overrides),
		Due: counts[0], Released: counts[1], NotBegun: counts[2] - counts[1],
	}
	own.ExitCode, own.Error = endOf(r.Ending, err)
	return own
}

// endOf returns the exit code and the text of an error for the ledger. ending may be nil.
func endOf(ending func(error) (int, string), err error) (code int, text string) {
	switch {
	case ending != nil:
		code, text = ending(err)
	case err != nil:
		code, text = 1, printable.Error(err)
	}
	return code, shortened(text)
}

// shortened returns a text in a length that the ledger takes.
func shortened(text string) string { return printable.Shorten(text, ledger.MaxRunText) }
