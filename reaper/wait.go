package reaper

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// passes looks once, or, where the run waits, again whenever the grace period of
// something is over that the first look suspected.
func (r *run) passes(ctx context.Context, info RunInfo) error {
	var end time.Time // of the waiting
	for {
		err := r.timed(ctx, func(ctx context.Context) error { return r.pass(ctx, info) })
		var partial *PartialError
		if r.Sleep == nil || err != nil && !errors.As(err, &partial) {
			return err
		}
		if end.IsZero() {
			end = r.lastDue()
		}
		due := r.nextDue(end)
		if due.IsZero() {
			return err
		}
		if ctx.Err() != nil { // a look without one would know nothing, and report that
			return cmp.Or(err, ctx.Err())
		}
		r.progress("waiting until %s for grace periods to end", due.UTC().Format(time.RFC3339))
		if err := r.Sleep(ctx, due.Sub(r.Now())); err != nil {
			return err
		}
		r.failures = nil // what failed was tried again, or is tried by the next run
	}
}

// timed calls with the timeout of one pass.
func (r *run) timed(ctx context.Context, pass func(ctx context.Context) error) error {
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	return pass(ctx)
}

// rounding is by how much the ledger may move a time.
const rounding = time.Second

// lastDue returns when the last grace period ends of what is suspected, however
// the ledger may round it; the zero time where nothing is.
func (r *run) lastDue() time.Time {
	var last time.Time
	for _, e := range r.report.Entries {
		if e.Verdict == Suspected {
			last = latest(last, e.Due.Add(rounding))
		}
	}
	return last
}

// nextDue returns when the next one ends, but none after the end; the zero time
// where there is none.
func (r *run) nextDue(end time.Time) time.Time {
	var next time.Time
	for _, e := range r.report.Entries {
		if e.Verdict != Suspected {
			continue
		}
		due := e.Due.Add(rounding)
		if !e.Due.After(end) && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}
