package report

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/go-multierror"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A PoolFailure is a failure in one pool: of its releases, or of one of its allocations.
type PoolFailure struct {
	Backend, Pool string
	What          string // how many releases, or the key of the allocation
	Err           error
}

// Error names the backend, the pool, and how much failed.
func (f *PoolFailure) Error() string {
	return fmt.Sprintf("%s: %s: %s: %s", f.Backend, f.Pool, f.What, f.Err)
}

// Unwrap returns the cause.
func (f *PoolFailure) Unwrap() error { return f.Err }

// particular matches the parts in which the texts of equal failures differ: quoted names,
// and numbers with what belongs to them, such as addresses, times and UIDs.
var particular = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[\w.:/-]*[0-9][\w.:/-]*`)

// Likeness returns a text that is the same for equal failures of different pools,
// objects and numbers.
func Likeness(err error) string {
	var inPool *PoolFailure
	var unread *ipam.PoolError
	text := err.Error()
	switch {
	case errors.As(err, &inPool):
		text = inPool.Backend + ": " + inPool.Err.Error()
	case errors.As(err, &unread):
		text = strings.Replace(text, unread.Pool+": ", "", 1)
	}
	return particular.ReplaceAllString(text, "#")
}

// A FailureGroup is a set of failures with the same text.
type FailureGroup struct {
	First error
	Count int
}

// Error is the first failure, with the number of all.
func (l *FailureGroup) Error() string {
	if l.Count == 1 {
		return printable.Error(l.First)
	}
	return fmt.Sprintf("%s failures, the first: %s", printable.Thousands(l.Count), printable.Error(l.First))
}

// Alike groups equal failures, in the order of the first of each group.
func Alike(failures []error) []*FailureGroup {
	var groups []*FailureGroup
	known := make(map[string]*FailureGroup)
	for _, err := range failures {
		key := Likeness(err)
		if known[key] == nil {
			known[key] = &FailureGroup{First: err}
			groups = append(groups, known[key])
		}
		known[key].Count++
	}
	return groups
}

// A PartialError has the failures of a run that did not stop it: some backend, pool or
// release failed, and the rest is done.
type PartialError struct{ failures *multierror.Error }

// maxKinds is how many different failures one line shows.
const maxKinds = 5

// Error returns the failures on one line. It counts equal ones, and shows the first of them.
func (e *PartialError) Error() string {
	groups := Alike(e.failures.Errors)
	var lines []string
	for _, group := range groups[:min(len(groups), maxKinds)] {
		lines = append(lines, group.Error())
	}
	if more := len(groups) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %s other kinds of failure: -o json lists them", printable.Thousands(more)))
	}
	return strings.Join(lines, "; ")
}

// Unwrap returns the failures.
func (e *PartialError) Unwrap() []error { return e.failures.Errors }

// Partial returns failures as a *PartialError, or nil if there are none.
func Partial(failures []error) error {
	if len(failures) == 0 {
		return nil
	}
	return &PartialError{multierror.Append(nil, failures...)}
}
