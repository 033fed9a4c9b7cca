package reaper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/sethvargo/go-retry"

	"github.com/ip-reaper/ip-reaper/policy"
)

// Options are what a run needs. All are required but Progress and those whose
// zero value is said to mean something.
type Options struct {
	ID      string
	Version string
	Address string // of the API server, for the report

	Policy   policy.Policy
	Backends []Backend // in the order in which they release
	Cluster  Cluster
	Ledgers  Ledgers

	Now          func() time.Time
	Logger       *slog.Logger
	Progress     func(line string) // told at each phase; may be nil
	Concurrency  int               // units that are released at the same time
	IgnoreLimits bool
}

// A PartialError is a run that did what it could: some backend, unit or release
// failed, the rest is done.
type PartialError struct{ failures *multierror.Error }

// Error lists the failures on one line.
func (e *PartialError) Error() string {
	lines := make([]string, len(e.failures.Errors))
	for i, err := range e.failures.Errors {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "; ")
}

// Unwrap returns the failures.
func (e *PartialError) Unwrap() []error { return e.failures.Errors }

// A run is one pass from the listing to the report.
type run struct {
	Options
	report Report

	mu       sync.Mutex
	failures *multierror.Error
}

// Run lists, asks who is alive, judges and, unless the policy says dry run,
// releases. The report is true whatever the error:
//
//   - a *LimitError: the plan was refused, nothing was written;
//   - a *PartialError: something failed, the rest is done;
//   - any other: the census failed or ctx ended before anything was written.
//
// When ctx ends during the release, what was not begun is kept.
func Run(ctx context.Context, o Options) (Report, error) {
	r := &run{Options: o}
	info := RunInfo{ID: o.ID, StartedAt: o.Now().UTC(), DryRun: *o.Policy.DryRun, Version: o.Version, Cluster: o.Address}
	err := r.run(ctx, info)
	r.report.Run.FinishedAt = o.Now().UTC()
	r.report.tally()
	return r.report, err
}

// run is the way through the house.
func (r *run) run(ctx context.Context, info RunInfo) error {
	p := r.Policy
	inv := r.list(ctx)
	r.report = newReport(info, inv)
	r.progress("listed %d stores", len(inv.Listings))
	census, err := TakeCensus(ctx, r.Cluster, r.scope(inv))
	if err != nil {
		r.report.tell(Judge(info.StartedAt, p, inv, Census{}, Ledger{}))
		return fmt.Errorf("census: %w", err)
	}
	r.progress("found %d pods", census.Size())

	now := r.Now().UTC()
	ledger, known := r.loadLedger(ctx)
	verdicts := Judge(now, p, inv, census, ledger)
	plan := MakePlan(verdicts)
	r.report.tell(verdicts)
	r.logVerdicts(verdicts)
	r.progress("judged %d reservations: %d to release", len(verdicts), len(plan.due))

	var limit *LimitError
	if err := plan.Check(p.Limits, census); errors.As(err, &limit) {
		if !r.IgnoreLimits {
			return err
		}
		r.warn("limits are ignored: " + limit.excess())
	}
	if *p.DryRun {
		for _, i := range plan.due {
			r.report.Entries[i].Outcome = Planned
		}
		return r.failed()
	}
	if known {
		r.saveLedger(ctx, now, inv, census, ledger, verdicts)
	}
	r.release(ctx, plan, census)
	r.progress("done")
	return r.failed()
}

// scope returns what verdicts need to know beside the pods.
func (r *run) scope(inv Inventory) Scope {
	return Scope{
		StatefulSets: r.Policy.Retention.StatefulSets != policy.Ignore,
		Nodes:        r.Policy.Nodes.Unreachable != policy.Release && inv.namesNodes(),
	}
}

// list takes the inventory of the backends that the policy does not disable.
func (r *run) list(ctx context.Context) Inventory {
	var enabled []Backend
	for _, b := range r.Backends {
		if r.Policy.Backends[b.Name()].Enabled != policy.Off {
			enabled = append(enabled, b)
		}
	}
	inv := TakeInventory(ctx, enabled, func(name string) bool {
		return r.Policy.Backends[name].Enabled == policy.On
	})
	for _, l := range inv.Listings {
		for _, err := range l.errs {
			r.fail(fmt.Errorf("%s: %w", l.Backend, err))
		}
	}
	for _, b := range r.Backends {
		if r.Policy.Backends[b.Name()].Enabled == policy.Off {
			inv.Listings = append(inv.Listings, Listing{Backend: b.Name(), Status: StatusSkipped, Message: "disabled by the policy"})
		}
	}
	return inv
}

// loadLedger reads what earlier runs remember. It reports false where the
// ledger may be whole but could not be read, so that it must not be replaced.
func (r *run) loadLedger(ctx context.Context) (Ledger, bool) {
	ledger, err := r.Ledgers.Load(ctx)
	switch {
	case errors.Is(err, ErrLedgerDamaged):
		r.warn(err.Error() + "; what it remembered counts as first seen now")
	case err != nil:
		r.failAndTell(fmt.Errorf("load the ledger: %w", err))
		return Ledger{}, false
	}
	return ledger, true
}

// saveLedger remembers what has to wait. Where another run wrote in between,
// its ledger is read and judged by again.
func (r *run) saveLedger(ctx context.Context, now time.Time, inv Inventory, c Census, have Ledger, verdicts []Verdict) {
	b := retry.WithMaxRetries(3, retry.NewConstant(100*time.Millisecond))
	err := retry.Do(ctx, b, func(ctx context.Context) error {
		want := next(verdicts)
		if want.Equal(have) {
			return nil
		}
		err := r.Ledgers.Save(ctx, want)
		if !errors.Is(err, ErrAgain) {
			return err
		}
		theirs, loadErr := r.Ledgers.Load(ctx)
		if loadErr != nil && !errors.Is(loadErr, ErrLedgerDamaged) {
			return loadErr
		}
		if have = theirs; have.Len() > 0 {
			verdicts = Judge(now, r.Policy, inv, c, have)
		}
		return retry.RetryableError(err)
	})
	if err != nil {
		r.failAndTell(fmt.Errorf("save the ledger: %w", err))
	}
}

// logVerdicts says why, one line a reservation.
func (r *run) logVerdicts(verdicts []Verdict) {
	for _, v := range verdicts {
		r.Logger.Debug("judged", "backend", v.Reservation.Backend, "pool", v.Reservation.Unit,
			"key", v.Reservation.Key, "ip", v.Reservation.IP, "pod", v.Reservation.Owner.Pod,
			"verdict", v.Standing.String(), "reason", v.Reason, "note", v.Note)
	}
}

// fail remembers a failure that does not stop the run.
func (r *run) fail(err error) {
	r.Logger.Error("failed", "err", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = multierror.Append(r.failures, err)
}

// failAndTell is fail for what no backend and no entry of the report can show.
func (r *run) failAndTell(err error) {
	r.fail(err)
	r.report.Warnings = append(r.report.Warnings, err.Error())
}

// failed returns the failures as a *PartialError, or nil.
func (r *run) failed() error {
	if r.failures.ErrorOrNil() == nil {
		return nil
	}
	return &PartialError{r.failures}
}

// warn puts a sentence into log and report.
func (r *run) warn(sentence string) {
	r.Logger.Warn("warning", "text", sentence)
	r.report.Warnings = append(r.report.Warnings, sentence)
}

// progress tells whoever watches.
func (r *run) progress(format string, args ...any) {
	if r.Progress != nil {
		r.Progress(fmt.Sprintf(format, args...))
	}
}
