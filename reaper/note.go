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

// note notes in the ledger how the run ended, also if it was interrupted. It writes nothing if the
// last save of the ledger said the same, as that of a run does which goes well and releases
// nothing. After a mistake of the user, nothing was written, and nothing is.
func (r *run) note(ctx context.Context, err error) {
	own := r.endedBy(err)
	own.Ended = true
	var mistake *ipam.InputError
	if !r.remembers() || errors.As(err, &mistake) || own == r.noted {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout)
	defer cancel()
	have, err := r.Ledgers.Load(ctx) // after any error it may be whole, or nobody was told of the damage
	if err == nil {
		_, err = saveLedger(ctx, r.Ledgers, have.Salted(), func(have ledger.Ledger) ledger.Ledger { return have.WithRun(own) })
	}
	if err != nil {
		r.Logger.Debug("the ledger does not have how the run ended", "err", printable.Error(err))
	}
}

// endedBy returns the run as the ledger has it, if it ends now and with this error. A run that may
// wait for grace periods has not ended.
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
