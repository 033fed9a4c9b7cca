package reaper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sethvargo/go-retry"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errNoAnswer is a backend that broke its contract.
var errNoAnswer = errors.New("the backend did not answer for it")

// release carries out the plan: backend by backend in their order, since one
// store's release may rest on another's, and the units of each concurrently.
func (r *run) release(ctx context.Context, plan Plan, census Census) {
	confirmer := NewConfirmer(r.Policy, r.Cluster, census, len(plan.due))
	for _, b := range r.Backends {
		var due []int
		for _, i := range plan.of(b.Name()) {
			if err := r.outlived(plan.verdicts[i]); err != nil {
				r.settle(i, Kept, err)
				continue
			}
			due = append(due, i)
		}
		unitOf := func(i int) string { return plan.verdicts[i].Reservation.Unit }
		units := byUnit(due, unitOf)
		if len(units) > 0 {
			r.progress("releasing in %s: %d units", b.Name(), len(units))
		}
		var g errgroup.Group
		g.SetLimit(max(1, r.Concurrency))
		for _, unit := range units {
			g.Go(func() error {
				for batch := range slices.Chunk(unit, MaxBatch) {
					r.releaseBatch(ctx, b, unitOf(batch[0]), plan, confirmer, batch)
				}
				return nil
			})
		}
		_ = g.Wait() // every failure is already in the report
		r.mend(ctx, b, plan)
	}
	for _, i := range plan.due {
		if e := r.report.Entries[i]; e.Outcome == Released {
			r.released = append(r.released, Release{plan.verdicts[i].orphan.unit.Object, e})
		}
	}
}

// byUnit groups indices by the unit of what they stand for; units and indices stay
// in their order.
func byUnit(indices []int, unitOf func(i int) string) [][]int {
	var units [][]int
	place := make(map[string]int)
	for _, i := range indices {
		at, known := place[unitOf(i)]
		if !known {
			at = len(units)
			place[unitOf(i)] = at
			units = append(units, nil)
		}
		units[at] = append(units[at], i)
	}
	return units
}

// outlived returns an error unless everything was released that has to go before.
func (r *run) outlived(v Verdict) error {
	for _, i := range v.after {
		if r.report.Entries[i].Outcome != Released {
			return fmt.Errorf("%w: %s, which it keeps back, was not released", ErrKept, r.report.Entries[i].IP)
		}
	}
	return nil
}

// releaseBatch releases some entries of one unit, and tries again for those
// that were not decided, each time with fresh warrants.
func (r *run) releaseBatch(ctx context.Context, b Backend, unit string, plan Plan, confirmer *Confirmer, batch []int) {
	undecided := batch
	var last []error
	var asked time.Duration // to wait, by the API server
	backoff := retry.WithMaxRetries(4, retry.WithJitterPercent(20, retry.NewExponential(100*time.Millisecond)))
	patient := retry.BackoffFunc(func() (time.Duration, bool) {
		wait, stop := backoff.Next()
		return max(wait, asked), stop
	})
	err := retry.Do(ctx, patient, func(ctx context.Context) error {
		if last != nil {
			confirmer.Forget()
		}
		undecided, last = r.attempt(ctx, b, unit, plan, confirmer, undecided)
		if len(undecided) == 0 {
			return nil
		}
		seconds, _ := apierrors.SuggestsClientDelay(last[0])
		asked = time.Duration(seconds) * time.Second
		return retry.RetryableError(last[0])
	})
	for n, i := range undecided {
		if last == nil {
			r.settle(i, Kept, err) // it was never begun
			continue
		}
		r.settle(i, Failed, last[n])
	}
	if len(undecided) > 0 {
		r.fail(fmt.Errorf("%s: %s: %d not released: %w", b.Name(), unit, len(undecided), err))
	}
}

// attempt confirms and releases once. It settles what was decided and returns
// the rest, with an error for each.
func (r *run) attempt(ctx context.Context, b Backend, unit string, plan Plan, confirmer *Confirmer, batch []int) ([]int, []error) {
	orphans := make([]Orphan, len(batch))
	for n, i := range batch {
		orphans[n] = plan.verdicts[i].orphan
	}
	warrants, errs := confirmer.Confirm(ctx, orphans)
	var sure []Warrant
	var where []int
	for n, err := range errs {
		if err == nil {
			sure = append(sure, warrants[n])
			where = append(where, n)
		}
	}
	if len(sure) > 0 {
		answers := b.Release(ctx, unit, sure)
		for n := range sure {
			errs[where[n]] = errNoAnswer
			if n < len(answers) {
				errs[where[n]] = answers[n]
			}
		}
	}

	var undecided []int
	var why, final, unfinished []error
	for n, i := range batch {
		switch err := errs[n]; {
		case err == nil:
			r.settle(i, Released, nil)
		case errors.Is(err, ErrUnfinished):
			r.settle(i, Released, err)
			unfinished = append(unfinished, err)
		case errors.Is(err, ErrReturned):
			r.settle(i, Returned, err)
		case errors.Is(err, ErrChanged):
			r.settle(i, Changed, err)
		case errors.Is(err, ErrKept):
			r.settle(i, Kept, err)
		case errors.Is(err, ErrAgain):
			undecided = append(undecided, i)
			why = append(why, err)
		default:
			r.settle(i, Failed, err)
			final = append(final, err)
		}
	}
	if len(final) > 0 {
		r.fail(fmt.Errorf("%s: %s: %d not released: %w", b.Name(), unit, len(final), final[0]))
	}
	if len(unfinished) > 0 {
		r.fail(fmt.Errorf("%s: %s: %d: %w", b.Name(), unit, len(unfinished), unfinished[0]))
	}
	return undecided, why
}

// settle writes down what became of one reservation. Units are released
// concurrently, but each entry belongs to one unit.
func (r *run) settle(i int, outcome Outcome, err error) {
	e := &r.report.Entries[i]
	e.Outcome = outcome
	if err != nil {
		e.Error = err.Error()
	}
	r.Logger.Info("release", "backend", e.Backend, "pool", e.Pool, "key", e.Key, "ip", e.IP,
		"pod", e.Owner.Namespace+"/"+e.Owner.Pod, "reason", e.Reason, "outcome", outcome, "err", err)
}

// mend gives entries back to their owners that turned out not to be orphans:
// those whose release an earlier run left half done, and those whose owner came
// back in the midst of it now. An entry that names no owner stays as it is.
func (r *run) mend(ctx context.Context, b Backend, plan Plan) {
	mender, ok := b.(Mender)
	if !ok {
		return
	}
	for i, v := range plan.verdicts {
		owner, outcome := v.Reservation.Owner.Pod, r.report.Entries[i].Outcome
		half := outcome == Returned || outcome == Kept && v.Reservation.Interrupted
		if v.Reservation.Backend != b.Name() || !half || owner.Namespace == "" || owner.Name == "" || ctx.Err() != nil {
			continue
		}
		if err := mender.Mend(ctx, v.Reservation); err != nil {
			r.settle(i, Failed, err)
			r.fail(fmt.Errorf("%s: give %s back: %w", b.Name(), v.Reservation.Key, err))
			continue
		}
		r.settle(i, Returned, nil)
	}
}
