package print

import (
	"fmt"
	"io"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

func printTable(w io.Writer, v view) error {
	return printLines(w, append(textLines(v, false), inLines(v.conclusion)...))
}

func printWide(w io.Writer, v view) error {
	return printLines(w, append(textLines(v, true), inLines(v.conclusion)...))
}

// printNames prints addresses, one per line.
func printNames(w io.Writer, v view) error { return printLines(w, inLines(v.names())) }

// printHead prints the notices that are not minor, and how to undo what was done.
func printHead(w io.Writer, v view) error {
	v.head = slices.DeleteFunc(slices.Clone(v.head), func(n notice) bool { return n.minor })
	return printLines(w, append(headLines(v), inLines(v.undo)...))
}

// textLines returns the lines above the conclusion: the notices, the tables and the warnings.
func textLines(v view, wide bool) []string {
	lines := headLines(v)
	width, folded := maxName, false
	switch {
	case v.noTrunc:
		width = 0
	case wide:
		width = maxCell
	}
	for _, t := range v.tables(wide) {
		if below := t.lines(width, v.color); len(below) > 0 {
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
	return append(lines, warningLines(v.warnings, v.color)...)
}

// warningLines returns one line for each warning.
func warningLines(warnings []string, color bool) []string {
	lines := make([]string, len(warnings))
	for i, warning := range warnings {
		lines[i] = paint("warning:", color) + " " + printable.Line(warning)
	}
	return lines
}

// headLines returns one line for each caveat, and then one for each notice.
func headLines(v view) []string {
	lines := warningLines(v.caveats, v.color)
	for _, n := range v.head {
		line := cell(n.text)
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
