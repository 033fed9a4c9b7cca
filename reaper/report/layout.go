package report

import (
	"bytes"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// maxWidth is the width of a table on a terminal, in characters.
const maxWidth = 120

// maxName is the width of a name in a sentence above or below a table.
const maxName = 40

// A layout says how a table is laid out.
type layout struct {
	width int  // at most; 0: as wide as its cells
	short bool // sandbox IDs are shortened
	color bool // our own words have colours
}

// lines returns the heading of a table, and its rows with the folds between them. It leaves
// out empty columns. A note that has no room in its row stands below it.
func (l layout) lines(t table) []string {
	t = t.printable().withoutEmpty()
	if l.short {
		t.shortenSandboxes()
	}
	if l.width > 0 {
		t.shortenNames(l.width)
	}
	rows := aligned(slices.Concat([][]string{t.heading}, t.rows))
	heading := rows[0]
	var lines []string
	if len(t.rows) > 0 || len(t.folds) == 0 {
		line, _ := l.cutNote(t, heading, t.heading)
		lines = append(lines, line)
	}
	for i := 0; i <= len(t.rows); i++ {
		for _, fold := range t.folds {
			if fold.row == i {
				lines = append(lines, "… "+cell(fold.text))
			}
		}
		if i < len(t.rows) {
			line, note := l.cutNote(t, rows[i+1], t.rows[i])
			if l.color {
				line = paintRow(line, heading)
			}
			lines = append(append(lines, line), below(note)...)
		}
	}
	return lines
}

// cutNote returns the line of a row, and its note if the line is too long for it.
func (l layout) cutNote(t table, line string, row []string) (rest, note string) {
	if !t.hasNotes() || l.width == 0 || utf8.RuneCountInString(line) <= l.width {
		return line, ""
	}
	note = strings.TrimRight(row[len(row)-1], " ") // as the line
	return strings.TrimRight(strings.TrimSuffix(line, note), " "), note
}

// aligned returns the lines of rows, which have the same number of cells.
func aligned(rows [][]string) []string {
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = w.Write([]byte(strings.Join(row, "\t") + "\n")) // a buffer takes all
	}
	_ = w.Flush()
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return lines
}

// below returns a note in lines that stand below its row, no wider than a table.
func below(note string) []string {
	const first, next = "  ↳ ", "    "
	var lines []string
	indent, left := first, []rune(note)
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
