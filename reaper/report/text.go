package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

func printTable(w io.Writer, v reportView) error { return printText(w, v, false) }

func printWide(w io.Writer, v reportView) error { return printText(w, v, true) }

// printText prints the notices, and aligned columns for a terminal.
func printText(w io.Writer, v reportView, wide bool) error {
	lines := headLines(v)
	folded := false
	for _, t := range v.tables(wide) {
		if len(t.rows)+len(t.folds) == 0 {
			continue
		}
		f := fitting{sandbox: !v.noTrunc, optional: true}
		if !wide && !v.noTrunc {
			f.width = maxWidth
		}
		lines = append(append(lines, ""), layOut(t, f, v.color)...)
		folded = folded || len(t.folds) > 0
	}
	if folded {
		lines = append(lines, "", "… stands for rows that are left out: -o wide or --all shows each")
	}
	lines = append(lines, "")
	for _, warning := range v.warnings {
		lines = append(lines, paint("warning:", v.color)+" "+printable.Line(warning))
	}
	for _, line := range v.conclusion {
		lines = append(lines, printable.Line(line))
	}
	if lines[0] == "" { // a report without notices
		lines = lines[1:]
	}
	return printLines(w, lines)
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

// layOut returns the lines of a table: a line with what all rows have in common, the
// heading, and the rows with the folds between them.
func layOut(t table, f fitting, color bool) []string {
	t, common := fit(t, f)
	var lines []string
	if common != "" {
		lines = append(lines, "all: "+common)
	}
	widths := t.widths()
	if len(t.rows) > 0 || len(t.folds) == 0 {
		lines = append(lines, t.aligned(t.heading, widths, false))
	}
	for i := 0; i <= len(t.rows); i++ {
		for _, fold := range t.folds {
			if fold.row == i {
				lines = append(lines, "… "+cell(fold.text))
			}
		}
		if i < len(t.rows) {
			lines = append(lines, t.aligned(t.rows[i], widths, color))
			if t.cut != nil {
				lines = append(lines, below(t.cut[i])...)
			}
		}
	}
	return lines
}

// below returns a text in lines that stand below its row, no wider than a table.
func below(text string) []string {
	const first, next = "  ↳ ", "    "
	var lines []string
	indent, left := first, []rune(text)
	for len(left) > 0 {
		n := min(len(left), maxWidth-len(next))
		if n < len(left) {
			for at := n; at > 0; at-- {
				if left[at] == ' ' {
					n = at
					break
				}
			}
		}
		lines = append(lines, indent+strings.TrimSpace(string(left[:n])))
		indent, left = next, left[n:]
	}
	return lines
}

// aligned returns a row in columns of these widths. With color, it colours the cells of
// columns that have our own words only.
func (t table) aligned(row []string, widths []int, color bool) string {
	var line strings.Builder
	last := len(row) - 1
	for last > 0 && row[last] == "" {
		last--
	}
	for i, text := range row[:last+1] {
		heading := t.heading[i]
		before, behind := "", strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
		if slices.Contains(t.numbers, heading) {
			before, behind = behind, before
		}
		line.WriteString(before)
		line.WriteString(paint(text, color && ownWords[heading]))
		if i < last {
			line.WriteString(behind)
			line.WriteString(gap)
		}
	}
	return strings.TrimRight(line.String(), " ")
}
