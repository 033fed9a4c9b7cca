package reaper

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// messages are what a run says while it goes on: to the log, to the terminal, and later in its
// report and its error. They are safe for concurrent use.
type messages struct {
	logger *slog.Logger
	show   func(line string) // on the terminal; nil if there is none
	shown  bool              // see Options.Shown

	mu       sync.Mutex
	warnings []string
	caveats  []string        // what changes the meaning of the report's figures
	failures []error         // of the current round
	logged   map[string]bool // the likeness of each failure that the log has as an error
}

// fail logs a failure that does not stop the run, and keeps it for the run's error. Only
// the first of equal failures is logged as an error; countFailures logs how many there are.
func (m *messages) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures = append(m.failures, err)
	like := report.Likeness(err)
	if m.logged[like] {
		m.logger.Debug("failed", "err", printable.Error(err))
		return
	}
	if m.logged == nil {
		m.logged = make(map[string]bool)
	}
	m.logged[like] = true
	m.quiet(m.logger.Error)("failed", "err", printable.Error(err))
}

// failAndWarn is fail for a failure of the run as a whole: the report has it as a
// warning, because it belongs to no backend and to no entry.
func (m *messages) failAndWarn(err error) {
	m.fail(err)
	m.addWarning(err.Error())
}

// failPools keeps one failure for each pool of these attempts: how many they are, and the first
// error.
func (m *messages) failPools(attempts []*attempt, what string) {
	for _, pool := range ipam.ByPool(attempts, (*attempt).pool) {
		first := pool[0].allocation()
		m.fail(&report.PoolFailure{Backend: first.Backend, Pool: first.Pool, What: fmt.Sprint(len(pool)) + what, Err: pool[0].err})
	}
}

// warn adds sentences to the log and to the report.
func (m *messages) warn(sentences ...string) {
	for _, sentence := range sentences {
		if m.addWarning(sentence) {
			m.quiet(m.logger.Warn)("warning", "text", sentence)
		}
	}
}

// quiet logs at debug level if the terminal shows the report, which says the same.
func (m *messages) quiet(write func(message string, args ...any)) func(message string, args ...any) {
	if m.shown {
		return m.logger.Debug
	}
	return write
}

// addWarning adds a sentence to the report. It reports whether the report did not have it.
func (m *messages) addWarning(sentence string) bool {
	sentence = printable.Shorten(sentence, printable.MaxText)
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.Contains(m.warnings, sentence) {
		return false
	}
	m.warnings = append(m.warnings, sentence)
	return true
}

// caveat adds a sentence that changes what the figures of the report mean.
func (m *messages) caveat(sentence string) {
	m.quiet(m.logger.Warn)("warning", "text", sentence)
	m.caveats = append(m.caveats, sentence)
}

// progress shows one line on the terminal, if there is one.
func (m *messages) progress(format string, args ...any) {
	if m.show != nil {
		m.show(fmt.Sprintf(format, args...))
	}
}

// countFailures logs how many failures are equal.
func (m *messages) countFailures(err error) {
	var partial *report.PartialError
	if !errors.As(err, &partial) {
		return
	}
	for _, group := range report.Alike(partial.Unwrap()) {
		if group.Count > 1 {
			m.quiet(m.logger.Error)("equal failures", "count", group.Count, "first", printable.Error(group.First))
		}
	}
}

// warnOfUndecoded names the first objects that a listing could not decode, and counts the
// rest. Two stores may have the same object.
func (m *messages) warnOfUndecoded(l ipam.Listing) {
	named := min(len(l.Undecoded), printable.MaxNamed)
	for _, err := range l.Undecoded[:named] {
		m.warn(printable.Error(err))
	}
	if more := len(l.Undecoded) - named; more > 0 {
		m.warn(fmt.Sprintf("%s: %s cannot be decoded: -o json lists them", l.Backend, printable.Counted(more, "more object")))
	}
}
