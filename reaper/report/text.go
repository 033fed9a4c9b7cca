package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

func printTable(w io.Writer, v reportView) error { return printText(w, v, false) }

func printWide(w io.Writer, v reportView) error { return printText(w, v, true) }

// printText prints the notices, the tables, the warnings and the conclusion.
func printText(w io.Writer, v reportView, wide bool) error {
	return printLines(w, append(textLines(v, wide), conclusionLines(v)...))
}

// textLines returns the lines above the conclusion.
func textLines(v reportView, wide bool) []string {
	lines := headLines(v)
	folded := false
	for _, t := range v.tables(wide) {
		if len(t.rows)+len(t.folds) == 0 {
			continue
		}
		l := layout{short: !v.noTrunc, color: v.color}
		if !wide && !v.noTrunc {
			l.width = maxWidth
		}
		lines = append(append(lines, ""), l.lines(t)...)
		folded = folded || len(t.folds) > 0
	}
	if folded {
		lines = append(lines, "", "… stands for rows that are left out: -o wide or --all shows each")
	}
	lines = append(lines, "")
	for _, warning := range v.warnings {
		lines = append(lines, paint("warning:", v.color)+" "+printable.Line(warning))
	}
	if lines[0] == "" { // a report without notices
		lines = lines[1:]
	}
	return lines
}

func conclusionLines(v reportView) []string {
	var lines []string
	for _, line := range v.conclusion {
		lines = append(lines, printable.Line(line))
	}
	return lines
}

// printHead prints the notices.
func printHead(w io.Writer, v reportView) error {
	v.head = slices.DeleteFunc(slices.Clone(v.head), func(n notice) bool { return n.minor })
	return printLines(w, headLines(v))
}

// headLines returns one line for each notice.
func headLines(v reportView) []string {
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
