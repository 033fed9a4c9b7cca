package reaper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-multierror"
)

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

// logVerdicts says why, one line a allocation.
func (r *run) logDecisions(decisions []Decision) {
	for _, v := range decisions {
		r.Logger.Debug("judged", "backend", v.Allocation.Backend, "pool", v.Allocation.Pool,
			"key", v.Allocation.Key, "ip", v.Allocation.IP, "pod", v.Allocation.Owner.Pod,
			"verdict", v.Verdict.String(), "reason", v.Reason, "note", v.Note)
	}
}
