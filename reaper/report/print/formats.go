// Package print prints the report of a run or of a restore, and other views of them.
package print

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// formats are the output formats, in the order of the help. To add one, write the function that
// prints a view, and add a line here.
var formats = []format{
	{name: "table", print: printTable},
	{name: "wide", all: true, print: printWide},
	{name: "json", print: printJSON},
	{name: "yaml", print: printYAML},
	{name: "name", print: printNames},
	{name: "html", all: true, print: printHTML},
	{name: "jsonpath=TEMPLATE", parse: parseJSONPath},
}

// A format is one way to print a view.
type format struct {
	name  string // the value of --output, as it is typed
	all   bool   // the format always has the allocations that are in use
	print printer

	// parse is set if the user writes a template after the name. It applies to the JSON form of
	// the report.
	parse func(template string) (printer, error)
}

// formatOf returns the format of a name and, after an equals sign, its template.
func formatOf(name string) (format, error) {
	kind, template, _ := strings.Cut(name, "=")
	i := slices.IndexFunc(formats, func(f format) bool { return f.name == name || f.parse != nil && strings.HasPrefix(f.name, kind+"=") })
	if i < 0 {
		return format{}, fmt.Errorf("unknown format %q", name)
	}
	f := formats[i]
	if f.parse == nil {
		return f, nil
	}
	err := errors.New("it needs a template")
	if template != "" {
		f.print, err = f.parse(template)
	}
	if err != nil {
		return format{}, fmt.Errorf("%s: %w", kind, err)
	}
	return f, nil
}

// Check returns an error if a format does not exist, or if its template cannot be parsed.
func Check(name string) error {
	_, err := formatOf(name)
	return err
}

// Formats returns the formats of reports as they are typed, such as jsonpath=TEMPLATE, the default first.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// LookFormats returns the formats of explanations and pools, the default first.
func LookFormats() []string { return []string{"table", "json", "yaml"} }

// Options say how to print a report. The zero value of a field other than Format is the
// short and plain form.
type Options struct {
	Format string // one that Check accepts
	All    bool   // with the allocations in use, and nothing folded
	Width  int    // of the terminal, which tables fit; 0 if nothing is shortened
	Color  bool   // table and wide colour their own words
	Quiet  bool   // print only how the run ended, and how much is leaked

	// Run are the words of a command that repeats the run; nil if there is none, as for files.
	Run []string

	Top   string // of pools: one of Tops; empty for none
	Limit int    // of the rows of Top, and of the pools without a network; at least 1

	Asking []report.Asking // of pools: pods that may wait for an address
}

// Brief reports whether the format leaves out the allocations that are in use. Then a report
// need not have them (reaper.Options.Brief).
func (o Options) Brief() bool {
	f, err := formatOf(o.Format)
	return err == nil && !f.all && !o.All
}

// Write prints the report of a run. Without Options.All, most formats leave out the
// allocations that are in use. Options.Quiet prints nothing of a mistake: it is the error of the
// command. It returns an error if Check does not accept the format.
func Write(w io.Writer, o Options, r report.Report) error {
	if o.Quiet && r.Result.ExitCode == exitUsage && len(r.Result.Refused)+r.Summary.Released == 0 {
		return nil
	}
	if o.Brief() {
		r = r.Brief()
	}
	v := viewOf(r, o.All)
	v.next, v.explain = nextOf(r, o.Run), explainOn(r.Run, ipOnPage)
	if r.Summary.Released > 0 {
		v.undo = undoOn(r.Run)
	}
	return o.write(w, v)
}

// WriteRestore prints the report of a restore. It returns an error if Check does not
// accept the format.
func WriteRestore(w io.Writer, o Options, r report.RestoreReport) error {
	return o.write(w, viewOfRestore(r))
}

// WriteHistory prints a history. It returns an error if Check does not accept the format. by
// says how the program was called. The names of a history are the IDs of its runs, or the
// addresses if one run was asked for.
func WriteHistory(w io.Writer, o Options, h report.History, by report.RunInfo) error {
	return o.write(w, viewOfHistory(h, by, o.All))
}

// WritePools prints how full the networks and the pools of a report are. The format must be one of
// LookFormats. With Options.All, the table has every pool, under its network.
func WritePools(w io.Writer, o Options, r report.Report) error {
	return o.write(w, viewOfPools(r, o))
}

// WriteExplanation prints an explanation. The format must be one of LookFormats. Its tables fit the
// width, in characters; 0 does not limit them.
func WriteExplanation(w io.Writer, format string, width int, x report.Explanation) error {
	return Options{Format: format, Width: width}.write(w, viewOfExplanation(x))
}

// write prints a view.
func (o Options) write(w io.Writer, v view) error {
	f, err := formatOf(o.Format)
	if err != nil {
		return err
	}
	v.width, v.color = o.Width, o.Color
	if o.Quiet {
		return printHead(w, v)
	}
	return f.print(w, v)
}

// A view is a report as the formats take it.
type view struct {
	value      any      // the report; its JSON is a contract with users
	caveats    []string // what changes the meaning of the head: lines before it
	head       []notice // how the run ended: lines above the tables
	tables     func(wide bool) []table
	warnings   []string
	conclusion []string        // lines
	undo       string          // the command that undoes a run, which Options.Quiet keeps
	names      func() []string // what -o name prints; nil if the report names no addresses
	states     func() string   // one letter for each entry: see pageData
	next       []judge.Remedy  // what to do next
	explain    string          // see pageData

	now   time.Time // of the report, for relative times; zero for none
	width int       // see Options
	color bool
}

// A notice is a line above the tables.
type notice struct {
	label string // such as REFUSED; empty for a line without one
	text  string
	minor bool // Options.Quiet leaves it out
}

// A printer prints a view.
type printer func(io.Writer, view) error
