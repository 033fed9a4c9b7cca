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
		case Dropped(c, have.Figures, r.Policy.Limits) == nil:
			have.Doubt = Doubt{}
		case have.Doubt.At == 0 || Dropped(c, have.Doubt.Figures, r.Policy.Limits) != nil:
			have.Doubt = Doubt{c.Figures(), ToSecond(now).Unix()}
		}
		return WithHung(have, decisions)
	})
}

// refuse returns a *LimitError with all limits that refuse the plan. If the run ignores
// limits, it warns instead.
func (r *run) refuse(plan Plan, census Census, last Ledger, now time.Time) error {
	limits, grace := r.Policy.Limits, r.Policy.GracePeriod.Duration
	refusals := append(plan.Believe(limits, census, last, now, grace), plan.Check(limits, census)...)
	if r.IgnoreLimits {
		for _, limit := range refusals {
			r.warn("limits are ignored: " + limit.Excess())
		}
		return nil
	}
	limit := Joined(refusals)
	if limit == nil {
		return nil
	}
	limit.Released = len(r.earlier)
	r.report.Refuse(plan.Due, limit.Refusals())
	return limit
}
