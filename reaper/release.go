package reaper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sethvargo/go-retry"
	"golang.org/x/sync/errgroup"
)

// errNoAnswer is a backend that broke its contract.
var errNoAnswer = errors.New("the backend did not answer for it")

// release carries out the plan: backend by backend in their order, since one
// store's release may rest on another's, and the pools of each concurrently.
func (r *run) release(ctx context.Context, plan Plan, census Census) {
	confirmer := NewConfirmer(r.Cluster, census, len(plan.due))
	for _, b := range r.Backends {
		var due []int
		for _, i := range plan.of(b.Name()) {
			if err := r.afterProtected(plan.decisions[i]); err != nil {
				r.settle(i, Kept, err)
				continue
			}
			due = append(due, i)
		}
		poolOf := func(i int) string { return plan.decisions[i].Allocation.Pool }
		pools := byPool(due, poolOf)
		if len(pools) > 0 {
			r.progress("releasing in %s: %d pools", b.Name(), len(pools))
		}
		var g errgroup.Group
		g.SetLimit(max(1, r.Concurrency))
		for _, pool := range pools {
			g.Go(func() error {
				for batch := range slices.Chunk(pool, MaxBatch) {
					r.releaseBatch(ctx, b, poolOf(batch[0]), plan, confirmer, batch)
				}
				return nil
			})
		}
		_ = g.Wait() // every failure is already in the report
		r.mend(ctx, b, plan)
	}
	for _, i := range plan.due {
		if e := r.report.Entries[i]; e.Outcome == Released {
			if plan.decisions[i].Allocation.holdsAddress() {
				r.spent++
			}
			r.released = append(r.released, Release{plan.object(i), e})
		}
	}
}

// byUnit groups indices by the pool of what they stand for; pools and indices stay
// in their order.
func byPool(indices []int, poolOf func(i int) string) [][]int {
	var pools [][]int
	place := make(map[string]int)
	for _, i := range indices {
		at, known := place[poolOf(i)]
		if !known {
			at = len(pools)
			place[poolOf(i)] = at
			pools = append(pools, nil)
		}
		pools[at] = append(pools[at], i)
	}
	return pools
}

// outlived returns an error unless everything was released that has to go before.
func (r *run) afterProtected(v Decision) error {
	for _, i := range v.after {
		if r.report.Entries[i].Outcome != Released {
			return fmt.Errorf("%w: %s, which it keeps back, was not released", ErrKept, r.report.Entries[i].IP)
		}
	}
	return nil
}

// releaseBatch releases some entries of one pool, and tries again for those
// that were not decided, each time with fresh warrants.
func (r *run) releaseBatch(ctx context.Context, b Backend, pool string, plan Plan, confirmer *Confirmer, batch []int) {
	undecided := batch
	var last []error
	var asked time.Duration // to wait, by the store
	backoff := retry.WithMaxRetries(4, retry.WithJitterPercent(20, retry.NewExponential(100*time.Millisecond)))
	patient := retry.BackoffFunc(func() (time.Duration, bool) {
		wait, stop := backoff.Next()
		return max(wait, asked), stop
	})
	err := retry.Do(ctx, patient, func(ctx context.Context) error {
		if last != nil {
			confirmer.Forget()
		}
		undecided, last = r.attempt(ctx, b, pool, plan, confirmer, undecided)
		if len(undecided) == 0 {
			return nil
		}
		asked = retryAfter(last[0])
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
		r.fail(fmt.Errorf("%s: %s: %d not released: %w", b.Name(), pool, len(undecided), err))
	}
}

// attempt confirms and releases once. It settles what was decided and returns
// the rest, with an error for each.
func (r *run) attempt(ctx context.Context, b Backend, pool string, plan Plan, confirmer *Confirmer, batch []int) ([]int, []error) {
	orphans := make([]Orphan, len(batch))
	for n, i := range batch {
		orphans[n] = plan.orphans[i]
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
		answers := b.Release(ctx, pool, sure)
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
		r.fail(fmt.Errorf("%s: %s: %d not released: %w", b.Name(), pool, len(final), final[0]))
	}
	if len(unfinished) > 0 {
		r.fail(fmt.Errorf("%s: %s: %d: %w", b.Name(), pool, len(unfinished), unfinished[0]))
	}
	return undecided, why
}

// settle writes down what became of one allocation. Pools are released
// concurrently, but each entry belongs to one pool.
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
	for i, v := range plan.decisions {
		owner, outcome := v.Allocation.Owner.Pod, r.report.Entries[i].Outcome
		half := outcome == Returned || outcome == Kept && v.Allocation.Interrupted
		if v.Allocation.Backend != b.Name() || !half || owner.Namespace == "" || owner.Name == "" || ctx.Err() != nil {
			continue
		}
		if err := mender.Mend(ctx, v.Allocation); err != nil {
			r.settle(i, Failed, err)
			r.fail(fmt.Errorf("%s: give %s back: %w", b.Name(), v.Allocation.Key, err))
			continue
		}
		r.settle(i, Returned, nil)
	}
}
