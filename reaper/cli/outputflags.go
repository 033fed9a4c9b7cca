package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/dump"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// templateFile is the output format whose template is in a file.
const templateFile = report.InFile + "="

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

// options returns how to print a report. It reads the template that the format names. Names
// are shortened only on a terminal, so that grep finds them elsewhere.
func (f outputFlags) options(w ioStreams, output string, all bool) (report.Options, error) {
	color, err := f.colored(w)
	if err != nil {
		return report.Options{}, err
	}
	if f.quiet && output != "table" {
		return report.Options{}, reaper.BadInput(errors.New("--quiet prints no report, so it has no --output"), "give one of them")
	}
	if file, ok := strings.CutPrefix(output, templateFile); ok {
		text, err := readTemplate(file)
		if err != nil {
			return report.Options{}, reaper.BadInput(fmt.Errorf("--output: %w", err), "")
		}
		output = "jsonpath=" + text
	}
	if err := checkOutput(output); err != nil {
		return report.Options{}, err
	}
	return report.Options{Format: output, All: all, NoTrunc: f.noTrunc || !w.stdoutTerminal, Color: color, Quiet: f.quiet}, nil
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
		return false, reaper.BadInput(fmt.Errorf("--color: unknown value %q", f.color), "use auto, always or never")
	}
}

// readTemplate reads a template file. The line break that ends the file is no part of the
// template.
func readTemplate(file string) (string, error) {
	const most = 1 << 20 // bytes
	text, err := dump.OpenFile(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = text.Close() }()
	data, err := io.ReadAll(io.LimitReader(text, most))
	return strings.TrimSuffix(string(data), "\n"), err
}
