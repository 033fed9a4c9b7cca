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
	flags.StringVar(&f.color, "color", "auto", "colour the words of a table: auto (on a terminal, unless NO_COLOR is set), always or never")
	flags.BoolVar(&f.noTrunc, "no-trunc", false, "do not shorten names and sandbox IDs; they are shortened only on a terminal")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print only how much is leaked, why the plan was refused, and what failed")
}

// options returns how to print a report. Names are shortened only on a terminal, so that grep
// finds them elsewhere.
func (f outputFlags) options(w ioStreams, output string, all bool) (print.Options, error) {
	color, err := f.colored(w)
	if err != nil {
		return print.Options{}, err
	}
	if f.quiet && output != "table" {
		return print.Options{}, ipam.BadInput(errors.New("--quiet prints no report, so it has no --output"), "give one of them")
	}
	if err := checkOutput(output); err != nil {
		return print.Options{}, err
	}
	return print.Options{Format: output, All: all, NoTrunc: f.noTrunc || !w.stdoutTerminal, Color: color, Quiet: f.quiet}, nil
}

// colored reports whether the report has colours.
func (f outputFlags) colored(w ioStreams) (bool, error) {
	switch f.color {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		return w.stdoutTerminal && w.env("NO_COLOR") == "" && w.env("TERM") != "dumb", nil
	default:
		return false, ipam.BadInput(fmt.Errorf("--color: unknown value %q", f.color), "use auto, always or never")
	}
}
