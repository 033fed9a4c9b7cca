package reaper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/sethvargo/go-retry"
)

// RestoreOptions are what it takes to undo a run. All are required but those whose
// zero value is said to mean something.
type RestoreOptions struct {
	ID      string
	Version string
	Address string // of the API server, for the report

	Journal Journal
	Damage  error        // why not all of the journal could be read; nil where it could
	Only    []netip.Addr // the addresses to put back; all if it is empty
	DryRun  bool

	Backends []Backend // in the order in which they release
	Cluster  Cluster
	Lock     Lock // may be nil

	Now    func() time.Time
	Logger *slog.Logger
}

// A restoration is one call of Restore.
type restoration struct {
	RestoreOptions
	report   RestoreReport
	failures []error
}

// Restore puts back what a run released, where its place is still free. Nothing
// that was given to somebody else meanwhile is touched, and an address that
// another pod shows is not put back. What is put back is as leaked as it was: it
// goes again when its grace period is over, unless its pod is there or the policy
// holds it.
//
// The report is true whatever the error: a *LockedError, a *PartialError where
// something is not back that was to be, that of ctx where it ended in the midst, or,
// before anything was written, any other.
func Restore(ctx context.Context, o RestoreOptions) (RestoreReport, error) {
	r := &restoration{RestoreOptions: o}
	r.report = newRestoreReport(o)
	r.tellDamage()
	err := r.restore(ctx)
	r.report.Run.FinishedAt = o.Now().UTC()
	r.report.tally()
	if err == nil {
		err = partial(r.failures)
	}
	return r.report, err
}

// tellDamage says what is lost with the parts of the journal that could not be read.
func (r *restoration) tellDamage() {
	if r.Damage == nil {
		return
	}
	r.failures = append(r.failures, r.Damage)
	for line := range strings.Lines(r.Damage.Error()) {
		r.report.Warnings = append(r.report.Warnings, "not all is put back: "+strings.TrimSuffix(line, "\n"))
	}
}

// restore is Restore from the lock to the last write.
func (r *restoration) restore(ctx context.Context) error {
	if r.Lock != nil && !r.DryRun {
		unlock, err := r.Lock.Acquire(ctx, "restore "+r.ID)
		if held := (*LockedError)(nil); errors.As(err, &held) {
			return err
		}
		if err != nil {
			r.report.Warnings = append(r.report.Warnings, "nothing keeps another run away: "+err.Error())
		} else {
			defer unlock()
		}
	}
	if of := r.Journal.Run.Cluster; of != "" && of != r.Address {
		r.report.Warnings = append(r.report.Warnings, fmt.Sprintf("the journal is of a run against %s; this is %s", of, r.Address))
	}
	inv := TakeInventory(ctx, r.Backends, func(string) bool { return false })
	census, err := TakeCensus(ctx, r.Cluster, Scope{})
	if err != nil {
		return fmt.Errorf("census: %w", err)
	}
	free := r.partition(newOccupancy(inv, census))
	if r.DryRun {
		for _, i := range free {
			r.settle(i, Restorable, nil)
		}
		return nil
	}
	// What was let go last has to be there first: it was written down as it was when
	// the rest was gone.
	for write := len(r.Journal.Writes); write >= 0; write-- {
		for _, b := range slices.Backward(r.Backends) {
			r.restoreBackend(ctx, b, write, free)
		}
	}
	return nil // what was not begun when ctx ended is among the failures
}

// restoreBackend puts back what is free of one backend and of one write of the
// journal, pool by pool.
func (r *restoration) restoreBackend(ctx context.Context, b Backend, write int, free []int) {
	var mine []int
	for _, i := range free {
		if r.report.records[i].Backend == b.Name() && r.report.writes[i] == write {
			mine = append(mine, i)
		}
	}
	poolOf := func(i int) string { return r.report.records[i].Pool }
	for _, pool := range byPool(mine, poolOf) {
		for batch := range slices.Chunk(pool, MaxBatch) {
			r.restoreBatch(ctx, b, poolOf(batch[0]), batch)
		}
	}
}

// restoreBatch puts back some entries of one pool, and tries again for those that
// were not decided.
func (r *restoration) restoreBatch(ctx context.Context, b Backend, pool string, batch []int) {
	recorder, ok := b.(Recorder)
	if !ok {
		for _, i := range batch {
			r.settle(i, NotRestored, errNoRecorder)
		}
		return
	}
	undecided := batch
	var last []error
	backoff := retry.WithMaxRetries(4, retry.NewExponential(100*time.Millisecond))
	err := retry.Do(ctx, backoff, func(ctx context.Context) error {
		undecided, last = r.attempt(ctx, recorder, pool, undecided)
		if len(undecided) == 0 {
			return nil
		}
		return retry.RetryableError(last[0])
	})
	for n, i := range undecided {
		if last == nil {
			r.settle(i, NotRestored, err) // it was never begun
			continue
		}
		r.settle(i, NotRestored, last[n])
	}
}

// attempt restores once. It settles what was decided and returns the rest, with an
// error for each.
func (r *restoration) attempt(ctx context.Context, b Recorder, pool string, batch []int) (undecided []int, why []error) {
	records := make([]Record, len(batch))
	for n, i := range batch {
		records[n] = r.report.records[i]
	}
	errs := b.Restore(ctx, pool, records)
	for n, i := range batch {
		err := errNoAnswer
		if n < len(errs) {
			err = errs[n]
		}
		switch {
		case err == nil:
			r.settle(i, Restored, nil)
		case errors.Is(err, ErrPresent):
			r.settle(i, AlreadyThere, nil)
		case errors.Is(err, ErrTaken):
			r.settle(i, Taken, err)
		case errors.Is(err, ErrAgain):
			undecided, why = append(undecided, i), append(why, err)
		default:
			r.settle(i, NotRestored, err)
		}
	}
	return undecided, why
}

// settle writes down what became of one record.
func (r *restoration) settle(i int, outcome RestoreOutcome, err error) {
	e := &r.report.Entries[i]
	e.Outcome = outcome
	if err != nil {
		e.Error = err.Error()
		r.failures = append(r.failures, fmt.Errorf("%s: %s: %s: %w", e.Backend, e.Pool, e.Key, err))
	}
	r.Logger.Info("restore", "backend", e.Backend, "pool", e.Pool, "key", e.Key, "ip", e.IP,
		"pod", e.Owner.Namespace+"/"+e.Owner.Pod, "outcome", outcome, "err", err)
}
