// Package report prints the report of a run or of a restore.
package report

import (
	"io"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// formats are the output formats, in the order of the help. To add a format, write
// its print function in a file of its own, and add a line here.
var formats = []format{
	{name: "table", print: printTable},
	{name: "wide", all: true, print: printWide},
	{name: "json", print: printJSON},
	{name: "yaml", print: printYAML},
	{name: "markdown", print: printMarkdown},
	{name: "name", print: printNames},
	{name: "html", all: true, print: printHTML},
}

// A format is one way to print a report.
type format struct {
	name  string // the value of --output
	all   bool   // the format always has the allocations that are in use
	print func(io.Writer, reportView) error
}

// Options say how to print a report. The zero value of a field other than Format is the
// short and plain form.
type Options struct {
	Format  string // one that Check accepts
	All     bool   // with the allocations in use, and nothing folded
	NoTrunc bool   // no name is shortened
	Color   bool   // table and wide colour their own words
	Quiet   bool   // print only how the run ended, and how much is leaked
}

// A reportView is a report as the formats take it.
type reportView struct {
	value      any      // the report; its JSON is a contract with users
	head       []notice // how the run ended: lines above the tables
	tables     func(wide bool) []table
	warnings   []string
	conclusion []string        // lines
	names      func() []string // what -o name prints; nil if the report names no addresses

	noTrunc, color bool
}

// A notice is a line above the tables.
type notice struct {
	label string // such as REFUSED; empty for a line without one
	text  string
	minor bool // Options.Quiet leaves it out
}

// A table is a heading, and rows with one cell for each column of the heading.
type table struct {
	heading []string
	rows    [][]string
	folds   []fold // in the order of their rows
}

// Brief reports whether the format leaves out the allocations that are in use. Then a report
// need not have them (reaper.Options.Brief).
func (o Options) Brief() bool {
	f, err := formatOf(o.Format)
	return err == nil && !f.all && !o.All
}

// Write prints the report of a run. Without Options.All, most formats leave out the
// allocations that are in use. It returns an error if Check does not accept the format.
func Write(w io.Writer, o Options, r reaper.Report) error {
	f, err := formatOf(o.Format)
	if err != nil {
		return err
	}
	if f.all {
		o.All = true
	}
	if !o.All {
		r = r.Brief()
	}
	return o.write(w, f, viewOf(r, o))
}

// WriteRestore prints the report of a restore. It returns an error if Check does not
// accept the format.
func WriteRestore(w io.Writer, o Options, r reaper.RestoreReport) error {
	f, err := formatOf(o.Format)
	if err != nil {
		return err
	}
	return o.write(w, f, viewOfRestore(r))
}

// write prints a view.
func (o Options) write(w io.Writer, f format, v reportView) error {
	v.noTrunc, v.color = o.NoTrunc, o.Color
	if o.Quiet {
		return printHead(w, v)
	}
	return f.print(w, v)
}

// Formats returns the names of the formats that need no argument, sorted.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	slices.Sort(names)
	return names
}

// FormatList returns the formats for a sentence, such as "table, wide or json".
func FormatList() string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	for _, f := range templates {
		names = append(names, f.name+"="+f.argument)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
