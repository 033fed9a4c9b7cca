package reaper

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A poolFailure is a failure in one pool: of its releases, or of one of its allocations.
type poolFailure struct {
	backend, pool string
	what          string // how many releases, or the key of the allocation
	err           error
}

// Error names the backend, the pool, and how much failed.
func (f *poolFailure) Error() string {
	return fmt.Sprintf("%s: %s: %s: %s", f.backend, f.pool, f.what, f.err)
}

// Unwrap returns the cause.
func (f *poolFailure) Unwrap() error { return f.err }

// particular matches the parts in which the texts of equal failures differ: quoted names,
// and numbers with what belongs to them, such as addresses, times and UIDs.
var particular = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[\w.:/-]*[0-9][\w.:/-]*`)

// likeness returns a text that is the same for equal failures of different pools,
// objects and numbers.
func likeness(err error) string {
	var inPool *poolFailure
	var unread *PoolError
	text := err.Error()
	switch {
	case errors.As(err, &inPool):
		text = inPool.backend + ": " + inPool.err.Error()
	case errors.As(err, &unread):
		text = strings.Replace(text, unread.Pool+": ", "", 1)
	}
	return particular.ReplaceAllString(text, "#")
}

// A likes is a number of equal failures.
type likes struct {
	first error
	count int
}

// Error is the first failure, with the number of all.
func (l *likes) Error() string {
	if l.count == 1 {
		return printable.Error(l.first)
	}
	return fmt.Sprintf("%s failures, the first: %s", printable.Thousands(l.count), printable.Error(l.first))
}

// alike groups equal failures, in the order of the first of each group.
func alike(failures []error) []*likes {
	var groups []*likes
	known := make(map[string]*likes)
	for _, err := range failures {
		key := likeness(err)
		if known[key] == nil {
			known[key] = &likes{first: err}
			groups = append(groups, known[key])
		}
		known[key].count++
	}
	return groups
}
