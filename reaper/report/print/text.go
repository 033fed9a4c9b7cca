package print

import (
	"fmt"
	"io"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

func printTable(w io.Writer, v view) error { return printText(w, v, false) }

func printWide(w io.Writer, v view) error { return printText(w, v, true) }

// printText prints the notices, the tables, the warnings and the conclusion.
func printText(w io.Writer, v view, wide bool) error {
	return printLines(w, append(textLines(v, wide), conclusionLines(v)...))
}

// textLines returns the lines above the conclusion.
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
		if len(t.rows) == 0 {
			continue
		}
		lines = append(append(lines, ""), t.lines(width, v.color)...)
		folded = folded || t.folded
	}
	if folded {
		lines = append(lines, "", "… stands for rows that are left out: -o wide or --all shows each")
	}
	if len(v.warnings)+len(v.conclusion) > 0 {
		lines = append(lines, "")
	}
	for _, warning := range v.warnings {
		lines = append(lines, paint("warning:", v.color)+" "+printable.Line(warning))
	}
	if len(v.head) == 0 {
		lines = lines[1:] // the empty line above the first table
	}
	return lines
}

func conclusionLines(v view) []string {
	var lines []string
	for _, line := range v.conclusion {
		lines = append(lines, printable.Line(line))
	}
	return lines
}

// printHead prints the notices.
func printHead(w io.Writer, v view) error {
	v.head = slices.DeleteFunc(slices.Clone(v.head), func(n notice) bool { return n.minor })
	return printLines(w, headLines(v))
}

// headLines returns one line for each notice.
func headLines(v view) []string {
	var lines []string
	for _, n := range v.head {
		line := cell(n.text)
		if n.label != "" {
			line = paint(n.label, v.color) + " " + line
		}
		lines = append(lines, line)
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
