package report

import (
	"strings"
	"unicode/utf8"
)

// align returns the lines of a table. The columns from first to last, without the last
// one, are of numbers and end at the right.
func align(heading []string, rows [][]string, first, last int) []string {
	width := make([]int, len(heading))
	all := make([][]string, 0, len(rows)+1)
	for _, row := range append([][]string{heading}, rows...) {
		cells := make([]string, len(row))
		for i, text := range row {
			cells[i] = cell(text)
			width[i] = max(width[i], utf8.RuneCountInString(cells[i]))
		}
		all = append(all, cells)
	}
	lines := make([]string, len(all))
	for n, row := range all {
		for i, text := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(text))
			if i >= first && i < last {
				text = pad + text
			} else {
				text += pad
			}
			row[i] = text
		}
		lines[n] = strings.TrimRight(strings.Join(row, "  "), " ")
	}
	return lines
}
