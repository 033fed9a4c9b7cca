package reaper

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A task is what a run or a restore has to write about one allocation: the release of an orphan, or a record to
// put back.
type task struct {
	outcome report.Fate // Unknown until it is decided
	err     error       // why it was decided like this, or what is left to do

	last  error // why the last try decided nothing; nil if none began
	lost  error // why a try may have written it without an answer; nil if none did
	begun bool  // a try has written a part of it
}

// state returns the task, also of what embeds it.
func (t *task) state() *task { return t }

// miss keeps an answer that decides nothing.
func (t *task) miss(answer error) {
	t.last = answer
	if t.lost == nil && errors.Is(answer, ipam.ErrLost) {
		t.lost = answer
	}
	t.begun = t.begun || errors.Is(answer, ipam.ErrBegun)
}

// carried is what embeds a task.
type carried interface{ state() *task }

// undecided returns the tasks that are not decided.
func undecided[T carried](tasks []T) []T {
	var open []T
	for _, t := range tasks {
		if t.state().outcome == report.Unknown {
			open = append(open, t)
		}
	}
	return open
}

// A carrier carries out tasks on one store.
type carrier[T carried] struct {
	// try sends tasks to the store once. It returns one answer for each, in their order. The error says that ctx
	// ended before. again: another try of the batch has been; late: there was too little time for it.
	try func(ctx context.Context, some []T, again, late bool) ([]error, error)

	// settle decides those whose answers decide something.
	settle func(some []T, answers []error)

	// halted returns why nothing may be written now; nil if it may.
	halted func() error
}

// idleTries is how many tries in a row may decide nothing.
const idleTries = 5

// carry carries out a batch. It tries again for those that were not decided, as long as the tries decide on some.
// Once a busy API server has refused requests, a try takes at most twice as many as the last one decided
// on, or half as many as that took if it decided on none, until the server refuses nothing again.
// It returns those that are left, and why the last try wrote nothing, if it might not.
func (c carrier[T]) carry(ctx context.Context, batch []T) (open []T, halted error) {
	open = batch
	most := len(batch)
	var asked time.Duration // the longest wait that the store asked for
	again, late, idle := false, false, 0
	backoff := retry.WithJitterPercent(20, retry.WithCappedDuration(800*time.Millisecond, retry.NewExponential(100*time.Millisecond)))
	patient := retry.BackoffFunc(func() (time.Duration, bool) {
		wait, _ := backoff.Next()
		return max(wait, asked), idle == idleTries
	})
	_ = retry.Do(ctx, patient, func(ctx context.Context) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		some, others := open[:min(most, len(open))], open[min(most, len(open)):]
		answers, err := c.try(ctx, some, again, late)
		if err != nil {
			return err
		}
		again = true
		late = late || slices.ContainsFunc(answers, isLate)
		for len(answers) < len(some) {
			answers = append(answers, ipam.ErrNoAnswer)
		}
		c.settle(some, answers)
		asked = 0
		for i, t := range some {
			if t.state().outcome == report.Unknown {
				t.state().miss(answers[i])
				asked = max(asked, ipam.RetryAfter(answers[i]))
			}
		}
		left := undecided(some)
		open = slices.Concat(others, left)
		if len(open) == 0 {
			return nil
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
		if halted = c.halted(); isEnd(halted) {
			return halted
		}
		return retry.RetryableError(open[0].state().last)
	})
	return open, halted
}

// isLate reports whether an answer says that there was too little time for a batch.
func isLate(err error) bool {
	var expired *ipam.ExpiredError
	return errors.As(err, &expired) || errors.Is(err, errSlow)
}
