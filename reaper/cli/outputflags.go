package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report/print"
)

// outputFlags are the flags of the commands that print the report of a run or a restore,
// beside --output.
type outputFlags struct {
	color   string
	noTrunc bool
	quiet   bool
}

// add adds the flags to a command.
func (f *outputFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.color, "color", "auto", "colour tables: `WHEN` is auto (on a terminal, unless NO_COLOR is set), always or never")
	flags.BoolVar(&f.noTrunc, "no-trunc", false, "do not shorten names and sandbox IDs on a terminal; elsewhere they are whole anyway")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print only how much is leaked, why the plan was refused, what failed, and how to undo a release")
}

// options returns how to print a report. Names are shortened only on a terminal, so that grep
// finds them elsewhere.
func (f outputFlags) options(w ioStreams, output string, all bool) (print.Options, error) {
	o := print.Options{Format: output, All: all, NoTrunc: f.noTrunc || !w.stdoutTerminal, Quiet: f.quiet}
	switch f.color {
	case "always":
		o.Color = true
	case "never":
	case "auto":
		o.Color = w.stdoutTerminal && w.env("NO_COLOR") == "" && w.env("TERM") != "dumb"
	default:
		return o, ipam.BadInput(fmt.Errorf("--color: unknown value %q", f.color), "use auto, always or never")
	}
	if f.quiet && all {
		return o, ipam.BadInput(errors.New("--quiet and --all contradict each other: --quiet prints no allocation"), "give one of them")
	}
	if f.quiet && output != "table" {
		return o, ipam.BadInput(errors.New("--quiet prints no report, so it has no --output"), "give one of them")
	}
	if err := print.Check(output); err != nil {
		return o, ipam.BadInput(fmt.Errorf("--output: %w", err), "use "+print.FormatList())
	}
	return o, nil
}
