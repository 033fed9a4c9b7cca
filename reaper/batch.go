package reaper

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// idleTries is how many tries in a row may decide nothing.
const idleTries = 5

// releaseBatch releases allocations of one backend. It tries again for those that were not
// decided, each time with fresh warrants, as long as the tries decide on some. If there was
// too little time for a batch alongside another one, its further tries run alone. Once a busy
// API server has refused requests, a try takes at most twice as many as the last one decided
// on, or half as many as that took if it decided on none, until the server refuses nothing again.
func (s *sender) releaseBatch(ctx context.Context, batch []*attempt) {
	open, most := batch, len(batch)
	var asked time.Duration // the longest wait that the store asked for
	again, late, idle := false, false, 0
	backoff := retry.WithJitterPercent(20, retry.WithCappedDuration(800*time.Millisecond, retry.NewExponential(100*time.Millisecond)))
	patient := retry.BackoffFunc(func() (time.Duration, bool) {
		wait, _ := backoff.Next()
		return max(wait, asked), idle == idleTries
	})
	err := retry.Do(ctx, patient, func(ctx context.Context) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if again {
			s.confirmer.Forget()
		}
		some, others := open[:min(most, len(open))], open[min(most, len(open)):]
		answers, err := s.try(ctx, some, late)
		if err != nil {
			return err
		}
		again = true
		late = late || slices.ContainsFunc(answers, isLate)
		s.settle(some, answers)
		left := undecided(some)
		open = slices.Concat(others, left)
		if len(open) == 0 {
			return nil
		}
		asked = 0
		for _, a := range left {
			asked = max(asked, ipam.RetryAfter(a.last))
		}
		switch decided := len(some) - len(left); {
		case decided > 0:
			idle, most = 0, min(2*decided, len(batch))
		case asked > 0 && most > 1:
			most = (most + 1) / 2
		default:
			idle++
		}
		if asked == 0 && len(left) > 0 { // the API server refuses nothing now
			most = len(batch)
		}
		return retry.RetryableError(open[0].last)
	})
	for _, a := range open {
		if a.last == nil {
			a.settle(s.logger, report.Kept, err) // its release had not begun
			continue
		}
		a.settle(s.logger, report.Failed, a.last)
	}
	s.failPools(open, " not released", func(a *attempt) error {
		if ctx.Err() != nil {
			return err
		}
		return a.err
	})
}

// try confirms and releases a batch once, alongside another one or alone. It returns one
// answer for each attempt, in their order: that of the second look, or else that of the store.
// The error says that ctx ended before the batch had its turn.
func (s *sender) try(ctx context.Context, batch []*attempt, alone bool) ([]error, error) {
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
		ctx = ipam.SendBy(ctx, ipam.FirstToExpire(valid))
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

// settle decides the attempts of a batch by their answers. It keeps the answers that decide
// nothing.
func (s *sender) settle(batch []*attempt, answers []error) {
	var failed, deleting, unfinished []*attempt
	for i, a := range batch {
		err := answers[i]
		outcome, decided := outcomeOf(err)
		if !decided {
			a.last = err
			if a.lost == nil && errors.Is(err, ipam.ErrLost) {
				a.lost = err
			}
			continue
		}
		a.settle(s.logger, outcome, err)
		switch {
		case outcome == report.Failed:
			failed = append(failed, a)
		case outcome == report.Deleting:
			deleting = append(deleting, a)
		case outcome == report.Released && err != nil:
			unfinished = append(unfinished, a)
		}
	}
	s.failPools(failed, " not released", (*attempt).cause)
	s.failPools(deleting, " not gone yet", (*attempt).cause)
	s.failPools(unfinished, "", (*attempt).cause)
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

// isLate reports whether an answer says that there was too little time for a batch.
func isLate(err error) bool {
	var expired *ipam.ExpiredError
	return errors.As(err, &expired) || errors.Is(err, errSlow)
}
