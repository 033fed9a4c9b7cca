package reaper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"

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
	Journals Journals
	Lock     Lock          // may be nil: then nothing keeps another run away
	Events   EventRecorder // may be nil: then nobody is told

	// ClockSkew tells how far the clock is ahead of the API server's, and false where
	// nobody knows. May be nil: then it is believed.
	ClockSkew func() (time.Duration, bool)

	Now          func() time.Time
	Logger       *slog.Logger
	Progress     func(line string) // told at each phase; may be nil
	Concurrency  int               // pools that are released at the same time
	Timeout      time.Duration     // of one look and what follows from it; 0 is none
	IgnoreLimits bool

	// Sleep has a run sit out the grace periods of what it suspects, and then look
	// again. It returns an error where ctx ends before. Nil means not to wait.
	Sleep func(ctx context.Context, d time.Duration) error
}

// A PartialError is a run that did what it could: some backend, pool or release
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

// A run is what Run does, from the lock to the report.
type run struct {
	Options
	report   Report    // of the current look
	earlier  []Entry   // that earlier looks released
	released []Release // by all looks
	spent    int       // addresses that earlier looks released
	memory   Ledger    // of the last look of a dry run

	mu       sync.Mutex
	failures *multierror.Error
}

// Run lists, asks who is alive, judges and, unless the policy says dry run,
// releases. The report is true whatever the error:
//
//   - a *LockedError: another run is going on, nothing was looked at;
//   - a *LimitError: the plan was refused, nothing of it was released;
//   - a *PartialError: something failed, the rest is done;
//   - any other: the census failed or ctx ended before anything was written.
//
// When ctx ends during the release, what was not begun is kept.
func Run(ctx context.Context, o Options) (Report, error) {
	r := &run{Options: o}
	info := RunInfo{ID: o.ID, StartedAt: o.Now().UTC(), DryRun: *o.Policy.DryRun, Version: o.Version, Cluster: o.Address}
	r.report = newReport(info, Inventory{})
	unlock, err := r.lock(ctx)
	if err == nil {
		err = r.passes(ctx, info)
		unlock()
	}
	r.report.Run.FinishedAt = o.Now().UTC()
	r.report.resume(r.earlier)
	r.report.tally()
	r.announce(ctx, err)
	return r.report, err
}

// lock keeps other runs away, if this one may write. Where that fails, for another
// reason than that there is one, this goes on: what is safe does not rest on it.
func (r *run) lock(ctx context.Context) (unlock func(), err error) {
	none := func() {}
	if r.Lock == nil || *r.Policy.DryRun {
		return none, nil
	}
	unlock, err = r.Lock.Acquire(ctx, r.ID)
	var held *LockedError
	switch {
	case errors.As(err, &held):
		return none, err
	case err != nil:
		r.warn("nothing keeps another run away: " + err.Error())
		return none, nil
	}
	return unlock, nil
}

// announce tells the cluster, also when the run was interrupted.
func (r *run) announce(ctx context.Context, err error) {
	var held *LockedError
	if r.Events == nil || *r.Policy.DryRun || errors.As(err, &held) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), announceTimeout)
	defer cancel()
	if err := r.Events.Announce(ctx, r.report, r.released); err != nil {
		r.warn("not every event was written: " + err.Error())
	}
}

// announceTimeout bounds how long a run goes on for its events alone.
const announceTimeout = 15 * time.Second

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
	r.tell(err.Error())
}

// failed returns the failures as a *PartialError, or nil. What earlier looks
// released and did not finish is not tried again, and stays one.
func (r *run) failed() error {
	for _, e := range r.earlier {
		if e.Error != "" {
			r.failures = multierror.Append(r.failures, fmt.Errorf("%s: %s: %s: %s", e.Backend, e.Pool, e.Key, e.Error))
		}
	}
	if r.failures.ErrorOrNil() == nil {
		return nil
	}
	return &PartialError{r.failures}
}

// warn puts a sentence into log and report.
func (r *run) warn(sentence string) {
	r.Logger.Warn("warning", "text", sentence)
	r.tell(sentence)
}

// tell puts a sentence into the report, once for all looks.
func (r *run) tell(sentence string) {
	if !slices.Contains(r.report.Warnings, sentence) {
		r.report.Warnings = append(r.report.Warnings, sentence)
	}
}

// progress tells whoever watches.
func (r *run) progress(format string, args ...any) {
	if r.Progress != nil {
		r.Progress(fmt.Sprintf(format, args...))
	}
}
