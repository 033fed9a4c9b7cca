package print

import (
	"bytes"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A table is a heading, and rows with one cell for each column of the heading. A row with one
// cell is a line between the others.
type table struct {
	heading []string
	rows    [][]string
	folded  bool // some lines stand for rows that --all shows
}

// say adds a line.
func (t *table) say(line string) { t.rows = append(t.rows, []string{line}) }

// fold adds a line in place of rows that are many and alike.
func (t *table) fold(text string) {
	t.say("… " + text)
	t.folded = true
}

// lines returns the heading of a table and its rows, without the columns that are empty. Names
// have at most this width, and IDs are shortened; nothing is if it is 0.
func (t table) lines(width int, color bool) []string {
	var columns []int
	for i := range t.heading {
		if i == 0 || slices.ContainsFunc(t.rows, func(row []string) bool { return len(row) > 1 && row[i] != "" }) {
			columns = append(columns, i)
		}
	}
	var cells [][]string
	for _, row := range slices.Concat([][]string{t.heading}, t.rows) {
		if len(row) > 1 {
			cells = append(cells, t.cellsOf(row, columns, width))
		}
	}
	var lines []string
	rows := aligned(cells)
	if len(rows) > 1 {
		lines = append(lines, rows[0])
	}
	next := 1
	for _, row := range t.rows {
		if len(row) == 1 {
			lines = append(lines, cell(row[0]))
			continue
		}
		line := rows[next]
		if color {
			line = paintRow(line, rows[0])
		}
		lines, next = append(lines, line), next+1
	}
	return lines
}

// cellsOf returns some columns of a row.
func (t table) cellsOf(row []string, columns []int, width int) []string {
	var cells []string
	for _, i := range columns {
		text := cell(row[i])
		if width > 0 {
			text = shortened(t.heading[i], text, width)
		}
		cells = append(cells, text)
	}
	return cells
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

// maxCell is the largest size of a cell for people, in bytes.
const maxCell = 1 << 10

// cell returns a text in one printable line of limited size.
func cell(text string) string { return printable.Shorten(printable.Line(text), maxCell) }

// maxName is the width of a name on a terminal, in characters. An address has 39 at most.
const maxName = 40

// shortened returns the cell of a column as it is on a terminal: long names have an ellipsis
// in their middle, and sandbox IDs the prefix that container runtimes show and accept.
func shortened(heading, text string, width int) string {
	const prefix = 13
	switch heading {
	case "IP", "POOL", "POD":
		return middle(text, width)
	case "SANDBOX":
		if utf8.RuneCountInString(text) > prefix {
			return string([]rune(text)[:prefix]) + "…"
		}
	}
	return text
}

// middle shortens a text to a width by an ellipsis in its middle: names begin and end by
// what tells them apart.
func middle(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	left := (width - 1) / 2
	return string(runes[:left]) + "…" + string(runes[len(runes)-(width-1-left):])
}
