package print

import (
	"io"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Options say how to print a report. The zero value of a field other than Format is the
// short and plain form.
type Options struct {
	Format  string // one that Check accepts
	All     bool   // with the allocations in use, and nothing folded
	NoTrunc bool   // no name is shortened
	Color   bool   // table and wide colour their own words
	Quiet   bool   // print only how the run ended, and how much is leaked

	// Run are the words of a command that repeats the run; nil if there is none, as for files.
	Run []string
}

// Brief reports whether the format leaves out the allocations that are in use. Then a report
// need not have them (reaper.Options.Brief).
func (o Options) Brief() bool {
	f, err := formatOf(o.Format)
	return err == nil && !f.all && !o.All
}

// Write prints the report of a run. Without Options.All, most formats leave out the
// allocations that are in use. It returns an error if Check does not accept the format.
func Write(w io.Writer, o Options, r report.Report) error {
	if o.Brief() {
		r = r.Brief()
	}
	v := viewOf(r, o.All)
	v.next, v.explain = nextOf(r, o.Run), explainOn(r.Run)
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

// WritePools prints how full the networks and the pools of a report are.
func WritePools(w io.Writer, o PoolsOptions, r report.Report) error {
	return Options{Format: o.Format, NoTrunc: true}.write(w, viewOfPools(r, o))
}

// WriteExplanation prints an explanation. The format must be one of LookFormats.
func WriteExplanation(w io.Writer, format string, x report.Explanation) error {
	return Options{Format: format, NoTrunc: true}.write(w, viewOfExplanation(x))
}

// write prints a view.
func (o Options) write(w io.Writer, v view) error {
	f, err := formatOf(o.Format)
	if err != nil {
		return err
	}
	v.noTrunc, v.color = o.NoTrunc, o.Color
	if o.Quiet {
		return printHead(w, v)
	}
	return f.print(w, v)
}
