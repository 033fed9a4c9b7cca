package print

import (
	"io"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// A view is a report as the formats take it.
type view struct {
	value      any      // the report; its JSON is a contract with users
	caveats    []string // what changes the meaning of the head: lines before it
	head       []notice // how the run ended: lines above the tables
	tables     func(wide bool) []table
	warnings   []string
	conclusion []string        // lines
	undo       []string        // those lines of it that Options.Quiet keeps
	names      func() []string // what -o name prints; nil if the report names no addresses
	states     func() string   // one letter for each entry: see pageData
	next       []judge.Remedy  // for the page of HTML
	explain    string          // see pageData

	noTrunc, color bool
}

// A notice is a line above the tables.
type notice struct {
	label string // such as REFUSED; empty for a line without one
	text  string
	minor bool // Options.Quiet leaves it out
}

// A printer prints a view.
type printer func(io.Writer, view) error
