package report

import (
	"fmt"
	"strings"

	"github.com/hashicorp/go-multierror"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

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
	if left := len(groups) - len(lines); left > 0 {
		lines = append(lines, fmt.Sprintf("and %s other kinds of failure: -o json lists them", printable.Thousands(left)))
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
