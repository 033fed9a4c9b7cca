package reaper

import (
	"context"
	"fmt"
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

// release carries out the attempts of a round, backend by backend in their order, because the
// releases of one store may depend on those of another. Pools of one backend are released
// concurrently.
func (r *run) release(ctx context.Context, n round) {
	confirmer := NewConfirmer(r.Cluster, n.census)
	told := &tally{messages: r.messages, now: r.Now, all: len(undecided(n.attempts)), began: r.Now(), told: r.Now()}
	for _, b := range r.Backends {
		s := &sender{messages: r.messages, tally: told, backend: b, plan: n.plan, confirmer: confirmer, room: semaphore.NewWeighted(batchesAtOnce)}
		s.release(ctx, n.attempts)
	}
	for _, a := range n.attempts {
		if gone := a.released() || a.outcome == report.Deleting; (gone || a.spent) && a.allocation().HoldsAddress() {
			r.past.spent[a.allocation().Backend]++
		}
	}
	if r.past.lacking = confirmer.Lacking(); r.past.lacking != nil {
		r.failAndWarn(r.past.lacking)
	}
}

// batchesAtOnce is how many batches of one backend are under way: one looks at its owners while
// the other writes.
const batchesAtOnce = 2

// A sender releases what is due in one backend. It is safe for concurrent use.
type sender struct {
	*messages
	*tally
	backend   ipam.Backend
	plan      judge.Plan
	confirmer *Confirmer
	room      *semaphore.Weighted // of batchesAtOnce: a try takes one, or all to run alone
}

// release carries out the attempts on what is in the backend, in batches of whole pools.
func (s *sender) release(ctx context.Context, all []*attempt) {
	attempts := ofBackend(all, s.backend.Name())
	s.keepProtectors(attempts, all)
	s.releaseDue(ctx, undecided(attempts))
	s.mend(ctx, attempts)
	s.doubt(attempts)
}

// releaseDue releases orphans in batches of whole pools.
func (s *sender) releaseDue(ctx context.Context, due []*attempt) {
	if pools := ipam.ByPool(due, (*attempt).pool); len(pools) > 0 {
		s.progress("releasing in %s: %d pools", s.backend.Name(), len(pools))
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
					s.add(len(batch))
				}
				return nil
			})
		}
		_ = g.Wait() // every failure is in its attempt
	}
}

// keepProtectors keeps what protects an allocation that was not released.
func (s *sender) keepProtectors(attempts, all []*attempt) {
	for _, a := range undecided(attempts) {
		for _, i := range a.decision.After {
			if protected := find(all, i); protected == nil || !protected.released() {
				label := s.plan.Decisions[i].Allocation.Label()
				a.settle(s.logger, report.Kept, fmt.Errorf("%w: %s, which it protects, was not released", ipam.ErrKept, label))
				break
			}
		}
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
		then := string(a.outcome)
		if a.err != nil {
			then = printable.Error(a.err)
		}
		a.owned = a.outcome != report.Kept
		a.spent = true
		a.settle(s.logger, report.Failed, fmt.Errorf("it may have been released: %w; and then: %s", a.lost, then))
		doubtful = append(doubtful, a)
	}
	s.failPools(doubtful, " not known to be released or kept", (*attempt).cause)
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
