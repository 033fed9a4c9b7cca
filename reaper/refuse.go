package reaper

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// doubt remembers a census that is not believed, and since when the figures have been
// that low. If the census is believed and only the plan is over a limit, there is no
// doubt any more. Nothing else is remembered of such a run, except which pods hang.
func (r *run) doubt(ctx context.Context, refusal error, memory ledger.Ledger, known bool, c census.Census, now time.Time, decisions []judge.Decision) {
	var limit *judge.LimitError
	if !errors.As(refusal, &limit) || !known || !r.remembers() || r.checkClock() != nil {
		return
	}
	r.saveLedger(ctx, memory, r.endedBy(refusal), func(have ledger.Ledger) ledger.Ledger {
		switch {
		case judge.Dropped(c, have.Figures, r.Policy.Limits) == nil:
			have.Doubt = ledger.Doubt{}
		case have.Doubt.At == 0 || judge.Dropped(c, have.Doubt.Figures, r.Policy.Limits) != nil:
			have.Doubt = ledger.Doubt{Figures: c.Figures(), At: ledger.ToSecond(now).Unix()}
		}
		return judge.WithHung(have, decisions)
	})
}

// refuse returns a *LimitError with all limits that refuse the plan. It warns of those that
// the run ignores.
func (r *run) refuse(plan judge.Plan, census census.Census, last ledger.Ledger, now time.Time) error {
	limits, grace := r.Policy.Limits, r.Policy.GracePeriod.Duration
	refusals := append(plan.Believe(limits, census, last, now, grace), plan.Check(limits, census)...)
	refusals = slices.DeleteFunc(refusals, func(refusal judge.Refusal) bool {
		ignored := slices.Contains(r.IgnoreLimits, refusal.Name())
		if ignored {
			r.warn("a limit is ignored: " + refusal.Message)
		}
		return ignored
	})
	if len(refusals) == 0 {
		return nil
	}
	r.report.Refuse(plan.Due, refusals)
	return &judge.LimitError{Refusals: refusals, Released: len(r.earlier)}
}
