package reaper

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// rounds makes one round. With Sleep, it then sleeps until the next grace period ends, and
// makes another one. It ends with the last grace period that the first round found, or
// before a sleep that would exceed MaxWait.
func (r *run) rounds(ctx context.Context) error {
	var end time.Time       // of the last grace period that the first round found
	var slept time.Duration // in all
	for {
		err := r.timedRound(ctx)
		var partial *report.PartialError
		if r.Sleep == nil || err != nil && !errors.As(err, &partial) {
			return err
		}
		dues := r.dues()
		if end.IsZero() && len(dues) > 0 {
			end = dues[len(dues)-1]
		}
		if len(dues) == 0 || dues[0].After(end.Add(rounding)) {
			return err
		}
		due := dues[0]
		if ctx.Err() != nil { // another round would replace the report with a failed listing
			return cmp.Or(err, ctx.Err())
		}
		d := max(due.Sub(r.Now()), 0)
		if slept += d; r.MaxWait > 0 && slept > r.MaxWait {
			r.progress("the next grace period ends at %s: not waiting for it", judge.Stamp(due))
			return err
		}
		r.progress("waiting until %s for grace periods to end", judge.Stamp(due))
		if err := r.Sleep(ctx, d); err != nil {
			return err
		}
		r.failures = nil // the next round tries again
	}
}

// timedRound is makeRound, with the timeout.
func (r *run) timedRound(ctx context.Context) error {
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	return r.makeRound(ctx)
}

// rounding is the most that the ledger may move a time.
const rounding = time.Second

// dues returns when the grace periods of selected allocations end, with the rounding of the
// ledger, in ascending order.
func (r *run) dues() []time.Time {
	var dues []time.Time
	for _, d := range r.round.selectedDecisions() {
		if d.Verdict == judge.Suspected {
			dues = append(dues, d.Due.Add(rounding))
		}
	}
	slices.SortFunc(dues, time.Time.Compare)
	return dues
}
