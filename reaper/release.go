package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sethvargo/go-retry"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// release carries out the plan, backend by backend in their order, because the releases
// of one store may depend on those of another. Pools of one backend are released
// concurrently.
func (r *run) release(ctx context.Context, plan judge.Plan, confirmer *Confirmer) {
	r.begun = nil
	r.settled, r.releasing, r.told = 0, r.Now(), r.Now()
	for _, b := range r.Backends {
		r.releaseBackend(ctx, b, plan, confirmer)
		r.mend(ctx, b, plan)
		r.doubtReleases(b, plan)
	}
	for _, i := range plan.Due {
		e := &r.report.Entries[i]
		if (e.Outcome == report.Released || e.Outcome == report.Deleting) && plan.Decisions[i].Allocation.HoldsAddress() {
			r.spent[e.Backend]++
		}
	}
}

// batchesAtOnce is how many batches of one backend are under way: one looks at its owners while
// the other writes.
const batchesAtOnce = 2

// releaseBackend releases the orphans of one backend, in batches of whole pools.
func (r *run) releaseBackend(ctx context.Context, b ipam.Backend, plan judge.Plan, confirmer *Confirmer) {
	var due []int
	for _, i := range plan.Of(b.Name()) {
		if err := r.afterProtected(plan.Decisions[i]); err != nil {
			r.settle(i, report.Kept, err)
			continue
		}
		due = append(due, i)
	}
	if pools := ipam.ByPool(due, plan.Pool); len(pools) > 0 {
		r.progress("releasing in %s: %d pools", b.Name(), len(pools))
	}
	sender := &sender{backend: b, plan: plan, confirmer: confirmer, room: semaphore.NewWeighted(batchesAtOnce)}
	// What rests on a list alone goes last: a read by name may find that lists lack pods.
	var named, listed []int
	for _, i := range due {
		if plan.Orphan(i).NeedsList() {
			listed = append(listed, i)
		} else {
			named = append(named, i)
		}
	}
	for _, some := range [][]int{named, listed} {
		r.releaseBatches(ctx, sender, together(largestFirst(plan, ipam.ByPool(some, plan.Pool))))
	}
}

// releaseBatches releases orphans, which it gets by whole pools, in batches.
func (r *run) releaseBatches(ctx context.Context, s *sender, pools [][]int) {
	var g errgroup.Group
	g.SetLimit(batchesAtOnce)
	for _, some := range pools {
		g.Go(func() error {
			for batch := range slices.Chunk(some, ipam.MaxBatch) {
				r.releaseBatch(ctx, s, batch)
				r.tellSettled(len(batch), len(s.plan.Due))
			}
			return nil
		})
	}
	_ = g.Wait() // every failure is already in the report
}

// tellEvery is the shortest time between two lines of progress during the releases.
const tellEvery = 2 * time.Second

// tellSettled counts more allocations as settled and, if the last line is old, shows how many they
// are, and how many per second.
func (r *run) tellSettled(more, all int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled += more
	now := r.Now()
	if now.Sub(r.told) < tellEvery {
		return
	}
	r.told = now
	took := now.Sub(r.releasing)
	r.progress("settled %s of %s, %.0f/s, %v elapsed", printable.Thousands(r.settled), printable.Thousands(all),
		float64(r.settled)/took.Seconds(), took.Round(time.Second))
}

// together joins whole pools that one batch has room for. A pool that is larger than a batch
// stays alone: its batches are released one after another.
func together(pools [][]int) (some [][]int) {
	for _, pool := range pools {
		last := len(some) - 1
		if last < 0 || len(some[last])+len(pool) > ipam.MaxBatch {
			some = append(some, nil)
			last++
		}
		some[last] = append(some[last], pool...)
	}
	return some
}

// largestFirst returns the pools of a plan with the largest ones first, each by the indices of
// its orphans. Pools of the same size stay in their order.
func largestFirst(p judge.Plan, pools [][]int) [][]int {
	return slices.SortedStableFunc(slices.Values(pools), func(a, b []int) int { return p.PoolSize(b[0]) - p.PoolSize(a[0]) })
}

// afterProtected returns an error unless all allocations that this one protects have
// been released.
func (r *run) afterProtected(d judge.Decision) error {
	for _, i := range d.After {
		if r.report.Entries[i].Outcome != report.Released {
			return fmt.Errorf("%w: %s, which it protects, was not released", ipam.ErrKept, r.report.Entries[i].IP)
		}
	}
	return nil
}

// idleAttempts is how many attempts in a row may decide nothing.
const idleAttempts = 5

// A sender hands the warrants of batches to one backend. It is safe for concurrent use.
type sender struct {
	backend   ipam.Backend
	plan      judge.Plan
	confirmer *Confirmer
	room      *semaphore.Weighted // of batchesAtOnce: an attempt takes one, or all to run alone
}

// releaseBatch releases allocations of one backend. It tries again for those that were not
// decided, each time with fresh warrants, as long as the attempts decide on some. If there was
// too little time for a batch alongside another one, its further attempts run alone. Once a busy
// API server has refused requests, an attempt takes at most twice as many as the last one decided
// on, or half as many as that took if it decided on none, until the server refuses nothing again.
func (r *run) releaseBatch(ctx context.Context, s *sender, batch []int) {
	undecided, most := batch, len(batch)
	last := make(map[int]error, len(batch)) // why it is not decided
	var asked time.Duration                 // the longest wait that the store asked for
	late, idle := false, 0
	backoff := retry.WithJitterPercent(20, retry.WithCappedDuration(800*time.Millisecond, retry.NewExponential(100*time.Millisecond)))
	patient := retry.BackoffFunc(func() (time.Duration, bool) {
		wait, _ := backoff.Next()
		return max(wait, asked), idle == idleAttempts
	})
	err := retry.Do(ctx, patient, func(ctx context.Context) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(last) > 0 {
			s.confirmer.Forget()
		}
		some, others := undecided[:min(most, len(undecided))], undecided[min(most, len(undecided)):]
		answers, err := s.attempt(ctx, some, late)
		if err != nil {
			return err
		}
		late = late || slices.ContainsFunc(answers, isLate)
		again, why := r.settleAll(s.plan, some, answers)
		undecided = slices.Concat(others, again)
		if len(undecided) == 0 {
			return nil
		}
		r.begunWith(again, why)
		asked = 0
		for n, i := range again {
			last[i] = why[n]
			asked = max(asked, ipam.RetryAfter(why[n]))
		}
		switch decided := len(some) - len(again); {
		case decided > 0:
			idle, most = 0, min(2*decided, len(batch))
		case asked > 0 && most > 1:
			most = (most + 1) / 2
		default:
			idle++
		}
		if asked == 0 && len(again) > 0 { // the API server refuses nothing now
			most = len(batch)
		}
		return retry.RetryableError(last[undecided[0]])
	})
	why := make(map[int]error, len(undecided))
	for _, i := range undecided {
		why[i] = err
		if len(last) == 0 {
			r.settle(i, report.Kept, err) // its release had not begun
			continue
		}
		r.settle(i, report.Failed, last[i])
		if ctx.Err() == nil {
			why[i] = last[i]
		}
	}
	r.failPools(s.plan, undecided, why, " not released")
}

// failPools keeps one failure for each pool of these releases, which all have an error: how many
// they are, and the first error.
func (r *run) failPools(plan judge.Plan, indices []int, why map[int]error, what string) {
	for _, pool := range ipam.ByPool(indices, plan.Pool) {
		first := plan.Decisions[pool[0]].Allocation
		r.fail(&report.PoolFailure{Backend: first.Backend, Pool: first.Pool, What: fmt.Sprint(len(pool)) + what, Err: why[pool[0]]})
	}
}

// attempt confirms and releases a batch once, alongside another one or alone. It returns one
// answer for each index, in their order: that of the second look, or else that of the store.
// The error says that ctx ended before the batch had its turn.
func (s *sender) attempt(ctx context.Context, batch []int, alone bool) ([]error, error) {
	takes := int64(1)
	if alone {
		takes = batchesAtOnce
	}
	if err := s.room.Acquire(ctx, takes); err != nil {
		return nil, err
	}
	defer s.room.Release(takes)
	orphans := make([]judge.Orphan, len(batch))
	for n, i := range batch {
		orphans[n] = s.plan.Orphan(i)
	}
	hurried := judge.FreshnessOf(orphans) == ipam.Freshness
	if hurried {
		ctx = ipam.Unqueued(ctx)
	}
	warrants, answers := s.confirmer.Confirm(ctx, orphans)
	var valid []ipam.Warrant
	var where []int // the place of each valid warrant in the batch
	for n, err := range answers {
		if err == nil {
			valid, where = append(valid, warrants[n]), append(where, n)
		}
	}
	if len(valid) == 0 {
		return answers, nil
	}
	if !hurried {
		ctx = ipam.SendBy(ctx, ipam.FirstToExpire(valid))
	}
	released := s.backend.Release(ctx, valid)
	for n := range valid {
		answers[where[n]] = ipam.ErrNoAnswer
		if n < len(released) {
			answers[where[n]] = released[n]
		}
	}
	return answers, nil
}

// settleAll settles the allocations of a batch that were decided. It returns the others,
// with an error for each.
func (r *run) settleAll(plan judge.Plan, batch []int, answers []error) (undecided []int, why []error) {
	var failed, deleting, unfinished []int
	because := make(map[int]error)
	for n, i := range batch {
		err := answers[n]
		outcome, decided := outcomeOf(err)
		if !decided {
			undecided, why = append(undecided, i), append(why, err)
			continue
		}
		r.settle(i, outcome, err)
		switch {
		case outcome == report.Failed:
			failed, because[i] = append(failed, i), err
		case outcome == report.Deleting:
			deleting, because[i] = append(deleting, i), err
		case outcome == report.Released && err != nil:
			unfinished, because[i] = append(unfinished, i), err
		}
	}
	r.failPools(plan, failed, because, " not released")
	r.failPools(plan, deleting, because, " not gone yet")
	r.failPools(plan, unfinished, because, "")
	return undecided, why
}

// outcomeOf returns the outcome that an answer of the second look or of a store means.
// It reports false if nothing was decided.
func outcomeOf(err error) (outcome report.Outcome, decided bool) {
	switch {
	case err == nil, errors.Is(err, ipam.ErrUnfinished):
		return report.Released, true
	case errors.Is(err, ipam.ErrDeleting):
		return report.Deleting, true
	case errors.Is(err, ipam.ErrReturned):
		return report.Returned, true
	case errors.Is(err, ipam.ErrChanged):
		return report.Changed, true
	case errors.Is(err, ipam.ErrKept):
		return report.Kept, true
	default:
		return report.Failed, !errors.Is(err, ipam.ErrAgain)
	}
}

// settle sets the outcome of one allocation in the report. Pools are released concurrently,
// but each entry belongs to one pool.
func (r *run) settle(i int, outcome report.Outcome, err error) {
	e := &r.report.Entries[i]
	e.Outcome = outcome
	if err != nil {
		e.Error = printable.Error(err)
	}
	r.Logger.Debug("release", "backend", e.Backend, "pool", e.Pool, "key", e.Key, "ip", e.IP,
		"pod", e.Owner.Namespace+"/"+e.Owner.Pod, "reason", e.Reason, "outcome", outcome, "err", err)
}

// begunWith notes allocations, by index, whose release may have begun, and why it is not decided.
// If it may have been carried out, no later reason replaces that.
func (r *run) begunWith(undecided []int, why []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun == nil {
		r.begun = make(map[int]error)
	}
	for n, i := range undecided {
		if !errors.Is(r.begun[i], ipam.ErrLost) {
			r.begun[i] = why[n]
		}
	}
}

// doubtReleases reports as failed what a later attempt of a backend did not find as it was listed,
// if an earlier one may have released it: its place may have gone to another owner since. The
// limits count it as released.
func (r *run) doubtReleases(b ipam.Backend, plan judge.Plan) {
	var doubtful []int
	because := make(map[int]error)
	for _, i := range plan.Of(b.Name()) {
		e := &r.report.Entries[i]
		lost := r.begun[i]
		if !errors.Is(lost, ipam.ErrLost) || e.Outcome == report.Released || e.Outcome == report.Deleting || e.Outcome == report.Failed {
			continue
		}
		e.Leaked = e.Leaked && e.Outcome == report.Kept // otherwise it has an owner by now
		because[i] = fmt.Errorf("it may have been released: %w; and then: %s", lost, cmp.Or(e.Error, string(e.Outcome)))
		doubtful = append(doubtful, i)
		r.settle(i, report.Failed, because[i])
		if plan.Decisions[i].Allocation.HoldsAddress() {
			r.spent[e.Backend]++
		}
	}
	r.failPools(plan, doubtful, because, " not known to be released or kept")
}

// mend gives allocations back to their owners: those whose owner came back during the
// release, and those whose release has begun and must not continue. An allocation that
// names no pod stays as it is, and so does one that is due and not selected, and one that the
// store is deleting: its owner would lose it again.
func (r *run) mend(ctx context.Context, b ipam.Backend, plan judge.Plan) {
	mender, ok := b.(ipam.Mender)
	if !ok {
		return
	}
	for i, d := range plan.Decisions {
		outcome := r.report.Entries[i].Outcome
		half := outcome == report.Returned || outcome == report.Kept && (d.Allocation.Interrupted || r.begun[i] != nil)
		left := d.Verdict == judge.Orphaned && !plan.Selects(i) || d.Allocation.Deleting != ""
		if d.Allocation.Backend != b.Name() || left || !half || !d.Allocation.NamesPod() || ctx.Err() != nil {
			continue
		}
		if err := mender.Mend(ctx, *d.Allocation); err != nil {
			r.settle(i, report.Failed, err)
			r.fail(fmt.Errorf("%s: %s: give it back to pod %s: %w",
				b.Name(), d.Allocation.Key, d.Allocation.Owner.Pod, err))
			continue
		}
		if outcome == report.Returned || d.Allocation.Interrupted {
			r.settle(i, report.Returned, nil)
		}
	}
}

// isLate reports whether an answer says that there was too little time for a batch.
func isLate(err error) bool {
	var expired *ipam.ExpiredError
	return errors.As(err, &expired) || errors.Is(err, errSlow)
}
