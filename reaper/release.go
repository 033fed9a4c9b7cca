package reaper

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// An attempt is all that a round did about one allocation.
type attempt struct {
	task
	judge.Orphan // the zero Orphan if the allocation is none: then it is only mended
	decision     *judge.Decision
	index        int // of the decision

	stored json.RawMessage // the data that its record needs

	owned bool // it has an owner by now
	spent bool // the limits count it as released
}

// attemptsOf returns the attempts of a plan, in the order of its decisions: what is due, which is
// not decided yet, and what an earlier run began to release and is kept now.
func attemptsOf(plan judge.Plan) []*attempt {
	var attempts []*attempt
	for i := range plan.Decisions {
		d := &plan.Decisions[i]
		orphaned := d.Verdict == judge.Orphaned
		if orphaned && !plan.Selects(i) || !orphaned && !d.Allocation.Interrupted {
			continue // almost all
		}
		a := &attempt{Orphan: plan.Orphan(i), decision: d, index: i}
		if !orphaned {
			a.outcome = report.Kept
		}
		attempts = append(attempts, a)
	}
	return attempts
}

// allocation returns the allocation of the attempt.
func (a *attempt) allocation() *ipam.Allocation { return a.decision.Allocation }

// pool returns the name of the pool of the attempt.
func (a *attempt) pool() string { return a.allocation().Pool }

// settle decides the attempt.
func (a *attempt) settle(log *slog.Logger, outcome report.Fate, err error) {
	a.outcome, a.err = outcome, err
	of := a.allocation()
	log.Debug("release", "backend", of.Backend, "pool", of.Pool, "key", of.Key, "ip", of.IP,
		"pod", of.Owner.Pod.String(), "reason", a.decision.Reason, "outcome", outcome, "err", err)
}

// ofBackend returns the attempts on allocations of a backend.
func ofBackend(attempts []*attempt, backend string) []*attempt {
	var some []*attempt
	for _, a := range attempts {
		if a.allocation().Backend == backend {
			some = append(some, a)
		}
	}
	return some
}

// failAll decides that every attempt that is not decided yet has failed, or was not begun if ctx ended
// before the first release.
func failAll(ctx context.Context, log *slog.Logger, attempts []*attempt, err error) {
	outcome := report.Failed
	if ended(ctx, err) {
		outcome = report.NotBegun
	}
	for _, a := range undecided(attempts) {
		a.settle(log, outcome, err)
	}
}

// ended reports whether an error says no more than that ctx ended.
func ended(ctx context.Context, err error) bool { return ctx.Err() != nil && errors.Is(err, ctx.Err()) }

// planAll notes that a run would release what is not decided yet, or that a limit refuses it.
func planAll(attempts []*attempt, outcome report.Fate) {
	for _, a := range undecided(attempts) {
		a.outcome = outcome
	}
}

// settleSiblings keeps the undecided attempts of every group that has a decided one. A group is
// released together or not at all.
func settleSiblings(log *slog.Logger, attempts []*attempt, why string) {
	broken := make(map[string]bool)
	for _, a := range attempts {
		if group := a.allocation().Group; a.outcome != report.Unknown && group != "" {
			broken[group] = true
		}
	}
	for _, a := range undecided(attempts) {
		if broken[a.allocation().Group] {
			a.settle(log, report.Kept, fmt.Errorf("%w: %s", ipam.ErrKept, why))
		}
	}
}

// released reports whether the store does not hold the allocation any more.
func (a *attempt) released() bool { return a.outcome == report.Released }

// done returns the attempt as the report has it.
func (a *attempt) done() report.Done {
	return report.Done{Outcome: a.outcome, Err: a.err, Owned: a.owned}
}

// release carries out the attempts of a round, backend by backend in their order, because the
// releases of one store may depend on those of another. Pools of one backend are released
// concurrently.
func (r *run) release(ctx context.Context, n round) {
	confirmer := NewConfirmer(r.Cluster, n.census, r.Backends...)
	confirmer.guard = r.guard
	told := &tally{messages: r.messages, now: r.Now, all: len(undecided(n.attempts)), began: r.Now(), told: r.Now()}
	for _, b := range r.Backends {
		s := &sender{messages: r.messages, told: told, backend: b, plan: n.plan, confirmer: confirmer, room: semaphore.NewWeighted(batchesAtOnce)}
		mine := ofBackend(n.attempts, b.Name())
		s.releaseDue(ctx, undecided(mine))
		s.mend(ctx, mine)
		s.doubt(mine)
	}
	why, gone := ctx.Err(), 0
	stopped := false
	for _, a := range n.attempts {
		if a.outcome == report.NotBegun {
			stopped, why = true, cmp.Or(why, a.err)
		}
		if a.released() {
			gone++
		}
		if (a.released() || a.outcome == report.Deleting || a.spent) && a.allocation().HoldsAddress() {
			r.earlier.spent[a.allocation().Backend]++
		}
	}
	if stopped {
		own := r.endedBy(nil)
		r.fail(fmt.Errorf("%w: %s of %s released (%s of %s)", why, printable.Thousands(own.Released), printable.Counted(own.Due, "address"),
			printable.Thousands(gone), printable.Counted(len(n.attempts), "allocation")))
	}
	if r.earlier.lacking = confirmer.Lacking(); r.earlier.lacking != nil {
		r.failAndWarn(r.earlier.lacking)
	}
}

// batchesAtOnce is how many batches of one backend are under way: one looks at its owners while
// the other writes.
const batchesAtOnce = 2

// A sender releases what is due in one backend. It is safe for concurrent use.
type sender struct {
	*messages
	told      *tally
	backend   ipam.Backend
	plan      judge.Plan
	confirmer *Confirmer
	room      *semaphore.Weighted // of batchesAtOnce: a try takes one, or all to run alone
}

// releaseDue releases orphans in batches of whole pools.
func (s *sender) releaseDue(ctx context.Context, due []*attempt) {
	if pools := ipam.ByPool(due, (*attempt).pool); len(pools) > 0 {
		s.progress("releasing in %s: %s", s.backend.Name(), printable.Counted(len(pools), "pool"))
	}
	// What rests on a list alone goes last: a read by name may find that lists lack pods.
	var named, listed []*attempt
	for _, a := range due {
		if a.NeedsList() {
			listed = append(listed, a)
		} else {
			named = append(named, a)
		}
	}
	for _, some := range [][]*attempt{named, listed} {
		var g errgroup.Group
		g.SetLimit(batchesAtOnce)
		for _, pools := range together(s.largestFirst(ipam.ByPool(some, (*attempt).pool))) {
			g.Go(func() error {
				for batch := range slices.Chunk(pools, ipam.MaxBatch) {
					s.releaseBatch(ctx, batch)
					s.told.add(len(batch))
				}
				return nil
			})
		}
		_ = g.Wait() // every failure is in its attempt
	}
}

// mend gives allocations back to their owners: those whose owner came back during the
// release, and those whose release has begun and must not continue. An allocation that
// names no pod stays as it is, and so does one that the store is deleting: its owner would lose it
// again.
func (s *sender) mend(ctx context.Context, attempts []*attempt) {
	mender, ok := s.backend.(ipam.Mender)
	if !ok {
		return
	}
	for _, a := range attempts {
		of := a.allocation()
		half := a.outcome == report.Returned || a.outcome == report.Kept && (of.Interrupted || a.last != nil)
		if !half || of.Deleting != "" || !of.NamesPod() || ctx.Err() != nil {
			continue
		}
		if err := mender.Mend(ctx, *of); err != nil {
			a.settle(s.logger, report.Failed, err)
			s.fail(fmt.Errorf("%s: %s: give it back to pod %s: %w", of.Backend, of.Key, of.Owner.Pod, err))
			continue
		}
		if a.outcome == report.Returned || of.Interrupted {
			a.settle(s.logger, report.Returned, a.err)
		}
	}
}

// doubt reports as failed what a later try did not find as it was listed, if an earlier one may
// have released it: its place may have gone to another owner since. The limits count it as
// released.
func (s *sender) doubt(attempts []*attempt) {
	var doubtful []*attempt
	for _, a := range attempts {
		if a.lost == nil || a.released() || a.outcome == report.Deleting || a.outcome == report.Failed {
			continue
		}
		then := a.outcome.String()
		if a.err != nil {
			then = printable.Error(a.err)
		}
		a.owned = a.outcome != report.Kept
		a.spent = true
		a.settle(s.logger, report.Failed, fmt.Errorf("it may have been released: %w; and then: %s", a.lost, then))
		doubtful = append(doubtful, a)
	}
	s.failPools(doubtful, " not known to be released or kept")
}

// largestFirst returns pools with the largest ones first. Pools of the same size stay in their
// order.
func (s *sender) largestFirst(pools [][]*attempt) [][]*attempt {
	return slices.SortedStableFunc(slices.Values(pools), func(a, b []*attempt) int {
		return s.plan.PoolSize(b[0].index) - s.plan.PoolSize(a[0].index)
	})
}

// together joins whole pools that one batch has room for. A pool that is larger than a batch
// stays alone: its batches are released one after another.
func together(pools [][]*attempt) (some [][]*attempt) {
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

// tellEvery is the shortest time between two lines of progress during the releases.
const tellEvery = 2 * time.Second

// A tally counts the attempts of a round that are decided, for the terminal. It is safe for
// concurrent use.
type tally struct {
	*messages
	now   func() time.Time
	all   int
	began time.Time

	mu      sync.Mutex
	settled int
	told    time.Time // when the last line of progress showed them
}

// add counts more attempts and, if the last line is old, shows how many they are, and how many per
// second.
func (t *tally) add(more int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settled += more
	now := t.now()
	if now.Sub(t.told) < tellEvery {
		return
	}
	t.told = now
	took := now.Sub(t.began)
	t.progress("settled %s of %s, %.0f/s, %v elapsed", printable.Thousands(t.settled), printable.Thousands(t.all),
		float64(t.settled)/took.Seconds(), took.Round(time.Second))
}

// releaseBatch releases allocations of one backend, each try with fresh warrants. If there was
// too little time for a batch alongside another one, its further tries run alone.
func (s *sender) releaseBatch(ctx context.Context, batch []*attempt) {
	open, halted := carrier[*attempt]{s.try, s.settle, s.confirmer.Halted}.carry(ctx, batch)
	var failed []*attempt
	for _, a := range open { // without a last answer, only the end of ctx, or of all releases, can have left it open
		stopped := a.last == nil || ended(ctx, a.last) || isEnd(halted) || errors.As(a.last, new(*ipam.HaltedError))
		if stopped && a.lost == nil && !a.begun {
			a.settle(s.logger, report.NotBegun, cmp.Or(ctx.Err(), halted, a.last))
			continue
		}
		a.settle(s.logger, report.Failed, a.last)
		failed = append(failed, a)
	}
	s.failPools(failed, " not released")
}

// try confirms and releases a batch once, alongside another one or alone. It returns one
// answer for each attempt, in their order: that of the second look, or else that of the store.
// The error says that ctx ended before the batch had its turn.
func (s *sender) try(ctx context.Context, batch []*attempt, again, alone bool) ([]error, error) {
	if again {
		s.confirmer.Forget()
	}
	takes := int64(1)
	if alone {
		takes = batchesAtOnce
	}
	if err := s.room.Acquire(ctx, takes); err != nil {
		return nil, err
	}
	defer s.room.Release(takes)
	orphans := make([]judge.Orphan, len(batch))
	for i, a := range batch {
		orphans[i] = a.Orphan
	}
	hurried := judge.FreshnessOf(orphans) == ipam.Freshness
	if hurried {
		ctx = ipam.Unqueued(ctx)
	}
	warrants, answers := s.confirmer.Confirm(ctx, orphans)
	var valid []ipam.Warrant
	var where []int // the place of each valid warrant in the batch
	for i, err := range answers {
		if err == nil {
			valid, where = append(valid, warrants[i]), append(where, i)
		}
	}
	if len(valid) == 0 {
		return answers, nil
	}
	if !hurried {
		ctx = ipam.SendBy(ctx, ipam.FirstToExpire(valid), s.confirmer.Halted)
	}
	released := s.backend.Release(ctx, valid)
	for n, i := range where {
		answers[i] = ipam.ErrNoAnswer
		if n < len(released) {
			answers[i] = released[n]
		}
	}
	return answers, nil
}

// settle decides the attempts of a batch by their answers.
func (s *sender) settle(batch []*attempt, answers []error) {
	remarkable := make(map[report.Fate][]*attempt) // those with an error
	for i, a := range batch {
		outcome, decided := outcomeOf(answers[i])
		if !decided {
			continue
		}
		a.settle(s.logger, outcome, answers[i])
		if a.err != nil {
			remarkable[outcome] = append(remarkable[outcome], a)
		}
	}
	s.failPools(remarkable[report.Failed], " not released")
	s.failPools(remarkable[report.Deleting], " not gone yet")
	s.failPools(remarkable[report.Released], "") // there is something left to do
}

// outcomeOf returns the outcome that an answer of the second look or of a store means.
// It reports false if nothing was decided.
func outcomeOf(err error) (outcome report.Fate, decided bool) {
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

// isEnd reports whether an error says that the run may release nothing more.
func isEnd(err error) bool {
	var halted *ipam.HaltedError
	return errors.As(err, &halted) && halted.End
}
