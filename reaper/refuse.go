package reaper

import (
	"context"
	"errors"
	"time"
)

// doubt remembers a census that is not believed, and since when the figures have been
// that low. If the census is believed and only the plan is over a limit, there is no
// doubt any more. Of such a run, nothing is remembered beside but which pods hang.
func (r *run) doubt(ctx context.Context, refusal error, ledger Ledger, known bool, c Census, now time.Time, decisions []Decision) {
	var limit *LimitError
	if !errors.As(refusal, &limit) || !known || !r.remembers() || r.checkClock() != nil {
		return
	}
	r.saveLedger(ctx, ledger, func(have Ledger) Ledger {
		switch {
		case c.dropped(have.figures, r.Policy.Limits) == nil:
			have.doubt = doubt{}
		case have.doubt.At == 0 || c.dropped(have.doubt.figures, r.Policy.Limits) != nil:
			have.doubt = doubt{c.figures(), toSecond(now).Unix()}
		}
		return have.withHung(decisions)
	})
}

// refuse returns a *LimitError with all limits that refuse the plan. If the run ignores
// limits, it warns instead.
func (r *run) refuse(plan Plan, census Census, last Ledger, now time.Time) error {
	limits, grace := r.Policy.Limits, r.Policy.GracePeriod.Duration
	refusals := append(plan.Believe(limits, census, last, now, grace), plan.Check(limits, census)...)
	if r.IgnoreLimits {
		for _, limit := range refusals {
			r.warn("limits are ignored: " + limit.excess())
		}
		return nil
	}
	limit := joined(refusals)
	if limit == nil {
		return nil
	}
	limit.Released = len(r.earlier)
	r.report.refused(plan, limit)
	return limit
}

// refused notes the limits that refuse the plan. What is due stays in its store.
func (r *Report) refused(plan Plan, limit *LimitError) {
	r.Result.Refused = limit.Refusals()
	for _, i := range plan.due {
		r.Entries[i].Outcome = Refused
	}
}
