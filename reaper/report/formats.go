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
}

// A format is one way to print a report.
type format struct {
	name  string // the value of --output
	all   bool   // the format always has the allocations that are in use
	print func(io.Writer, reportView) error
}

// A reportView is a report as the formats take it.
type reportView struct {
	value      any // the report; its JSON is a contract with users
	tables     func(wide bool) []table
	warnings   []string
	conclusion []string // lines
}

// A table is a heading, and rows with one cell for each column of the heading.
type table struct {
	heading []string
	rows    [][]string
}

// Write prints the report of a run. Without all, most formats leave out the
// allocations that are in use. The format must be one of Formats.
func Write(w io.Writer, name string, all bool, r reaper.Report) error {
	f := formatOf(name)
	if !all && !f.all {
		r = r.Brief()
	}
	return f.print(w, viewOf(r))
}

// WriteRestore prints the report of a restore. The format must be one of Formats.
func WriteRestore(w io.Writer, name string, r reaper.RestoreReport) error {
	return formatOf(name).print(w, viewOfRestore(r))
}

func formatOf(name string) format {
	return formats[slices.IndexFunc(formats, func(f format) bool { return f.name == name })]
}

// Formats returns the names of the formats, sorted.
func Formats() []string {
	names := names()
	slices.Sort(names)
	return names
}

// FormatList returns the names of the formats for a sentence, such as "table, wide
// or json".
func FormatList() string {
	names := names()
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func names() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}
