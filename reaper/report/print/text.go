package print

import (
	"fmt"
	"io"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

func printTable(w io.Writer, v view) error { return printText(w, v, false) }

func printWide(w io.Writer, v view) error { return printText(w, v, true) }

// printText prints everything, and at the end what to do next.
func printText(w io.Writer, v view, wide bool) error {
	lines := append(textLines(v, wide), inLines(v.conclusion)...)
	for _, one := range v.next {
		lines = append(lines, printable.Line(one.Says))
		if one.Command != "" {
			lines = append(lines, "  $ "+printable.Line(one.Command))
		}
	}
	return printLines(w, lines)
}

// printNames prints addresses, one per line.
func printNames(w io.Writer, v view) error { return printLines(w, inLines(v.names())) }

// printHead prints the notices that are not minor, and how to undo what was done.
func printHead(w io.Writer, v view) error {
	v.head = slices.DeleteFunc(slices.Clone(v.head), func(n notice) bool { return n.minor })
	lines := headLines(v)
	if v.undo != "" {
		lines = append(lines, "undo with: "+printable.Line(v.undo))
	}
	return printLines(w, lines)
}

// textLines returns the lines above the conclusion: the notices, the tables and the warnings.
func textLines(v view, wide bool) []string {
	lines := headLines(v)
	folded := false
	for _, t := range v.tables(wide) {
		if below := t.lines(v, wide); len(below) > 0 {
			lines = append(append(lines, ""), below...)
		}
		folded = folded || t.folded
	}
	if folded {
		lines = append(lines, "", "… marks rows left out: -o wide or --all shows them")
	}
	if len(v.warnings)+len(v.conclusion) > 0 {
		lines = append(lines, "")
	}
	return append(lines, warningLines(v, v.warnings)...)
}

// warningLines returns one line for each warning.
func warningLines(v view, warnings []string) []string {
	lines := make([]string, len(warnings))
	for i, warning := range warnings {
		lines[i] = paint("warning:", v.color) + " " + aged(printable.Line(warning), v.now)
	}
	return lines
}

// headLines returns one line for each caveat, and then one for each notice.
func headLines(v view) []string {
	lines := warningLines(v, v.caveats)
	for _, n := range v.head {
		line := aged(cell(n.text), v.now)
		if n.label != "" {
			line = paint(n.label, v.color) + " " + line
		}
		lines = append(lines, line)
	}
	return lines
}

// inLines returns each text in one printable line.
func inLines(texts []string) []string {
	lines := make([]string, len(texts))
	for i, text := range texts {
		lines[i] = printable.Line(text)
	}
	return lines
}

func printLines(w io.Writer, lines []string) error {
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
