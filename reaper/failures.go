package reaper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/hashicorp/go-multierror"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// fail logs a failure that does not stop the run, and keeps it for the run's error. Only
// the first of equal failures is logged as an error; failed logs how many there are.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = multierror.Append(r.failures, err)
	like := report.Likeness(err)
	if r.logged[like] {
		r.Logger.Debug("failed", "err", printable.Error(err))
		return
	}
	if r.logged == nil {
		r.logged = make(map[string]bool)
	}
	r.logged[like] = true
	r.Logger.Error("failed", "err", printable.Error(err))
}

// failAndWarn is fail for a failure of the run as a whole: the report has it as a
// warning, because it belongs to no backend and to no entry.
func (r *run) failAndWarn(err error) {
	r.fail(err)
	r.addWarning(err.Error())
}

// warnOfUndecoded names the first objects that a listing could not decode, and counts the
// rest. Two stores may have the same object.
func (r *run) warnOfUndecoded(l ipam.Listing) {
	named := min(len(l.Undecoded), printable.MaxNamed)
	for _, err := range l.Undecoded[:named] {
		r.warn(err.Error())
	}
	if more := len(l.Undecoded) - named; more > 0 {
		r.warn(fmt.Sprintf("%s: %s cannot be decoded: -o json lists them", l.Backend, printable.Counted(more, "more object")))
	}
}

// failed returns the failures as partial does, and logs how many are equal.
func (r *run) failed() error {
	err := r.partial()
	var partial *report.PartialError
	if !errors.As(err, &partial) {
		return nil
	}
	for _, group := range report.Alike(partial.Unwrap()) {
		if group.Count > 1 {
			r.Logger.Error("equal failures", "count", group.Count, "first", printable.Error(group.First))
		}
	}
	return err
}

// partial returns the failures so far as a *PartialError, or nil. A release that an earlier round
// did not finish is among them, because no later round tries it again.
func (r *run) partial() error {
	failures := slices.Clone(r.failures.WrappedErrors())
	for _, e := range r.earlier {
		if e.Error != "" {
			failures = append(failures, &report.PoolFailure{Backend: e.Backend, Pool: e.Pool, What: e.Key, Err: errors.New(e.Error)})
		}
	}
	return report.Partial(failures)
}

// warn adds sentences to the log and to the report.
func (r *run) warn(sentences ...string) {
	for _, sentence := range sentences {
		r.Logger.Warn("warning", "text", sentence)
		r.addWarning(sentence)
	}
}

// caveat adds a sentence that changes what the figures of the report mean.
func (r *run) caveat(sentence string) {
	r.Logger.Warn("warning", "text", sentence)
	r.report.Run.Caveats = append(slices.Clone(r.report.Run.Caveats), sentence)
}

// warnOfKept warns of what is kept despite its leaks: pools in which every address is
// protected, which the report notes too, what annotations alone keep, and what may be of another
// cluster.
func (r *run) warnOfKept(inv ipam.Inventory, c census.Census, decisions []judge.Decision) {
	protected, warnings := judge.ProtectedPools(inv, decisions)
	for i := range r.report.Pools {
		p := &r.report.Pools[i]
		p.ProtectedBy = protected[[2]string{p.Backend, p.Name}]
	}
	r.warn(warnings...)
	r.warn(judge.ClaimWarnings(c, decisions)...)
	r.warn(judge.ForeignWarnings(decisions)...)
}

// addWarning adds a sentence to the report, unless an earlier round has added it.
func (r *run) addWarning(sentence string) {
	sentence = printable.Shorten(sentence, printable.MaxText)
	if !slices.Contains(r.report.Warnings, sentence) {
		r.report.Warnings = append(r.report.Warnings, sentence)
	}
}

// progress shows one line on the terminal, if there is one.
func (r *run) progress(format string, args ...any) {
	if r.Progress != nil {
		r.Progress(fmt.Sprintf(format, args...))
	}
}

// logDecisions logs one line for each decision.
func (r *run) logDecisions(ctx context.Context, decisions []judge.Decision) {
	if !r.Logger.Enabled(ctx, slog.LevelDebug) {
		return // a line for each of many
	}
	for _, d := range decisions {
		r.Logger.DebugContext(ctx, "judged", "backend", d.Allocation.Backend, "pool", d.Allocation.Pool,
			"key", d.Allocation.Key, "ip", d.Allocation.IP, "pod", d.Allocation.Owner.Pod,
			"verdict", d.Verdict.String(), "reason", d.Reason, "note", d.Note)
	}
}
