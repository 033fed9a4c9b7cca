package reaper

import (
	"context"
	"errors"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// noteTimeout limits how long a run may take to note its end.
const noteTimeout = 5 * time.Second

// note records in the ledger how the run ended, even if it was interrupted. It writes nothing if
// the last save of the ledger said the same, as in a run that succeeds and releases nothing. After
// a mistake of the user in a selection, the run wrote nothing, and note does not either. Nor does it
// write to a ledger that has no room for it, or is damaged.
func (r *run) note(ctx context.Context, err error) {
	own := r.endedBy(err)
	own.Ended = true
	var mistake *ipam.InputError
	if !r.remembers() || errors.As(err, &mistake) && !errors.Is(err, ErrAnotherStore) || own == r.noted {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	ledgers := undamaged{r.Ledgers}
	have, err := ledgers.Load(ctx)
	if err == nil {
		_, err = saveLedger(ctx, ledgers, have.Salted(), func(have ledger.Ledger) ledger.Ledger {
			noted := have.WithRun(own)
			if _, left := noted.Fit(ledgers.Capacity()); left > 0 {
				return have // what verdicts rest on is worth more
			}
			return noted
		})
	}
	if err != nil && !errors.Is(err, ledger.ErrLeft) {
		r.Logger.Debug("the ledger does not have how the run ended", "err", printable.Error(err))
	}
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
	own := ledger.Run{
		ID: r.info.ID, Began: r.info.StartedAt.Unix(), DryRun: r.info.DryRun, Ended: r.Sleep == nil,
		Due: len(r.earlier) + r.due, Released: len(r.earlier),
	}
	for _, e := range r.report.Entries {
		if e.Outcome == report.Released {
			own.Released++
		}
	}
	text := ""
	switch {
	case r.Ending != nil:
		own.ExitCode, text = r.Ending(err)
	case err != nil:
		own.ExitCode, text = 1, printable.Error(err)
	}
	own.Error = printable.Shorten(text, ledger.MaxRunError)
	return own
}
