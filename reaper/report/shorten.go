package report

import (
	"slices"
	"unicode/utf8"
)

// leastWidths has the columns whose names are shortened, and how narrow each may become. No
// address has more than 39 characters, so in the column of addresses only keys are shortened.
var leastWidths = map[string]int{"IP": 39, "POOL": 12, "POD": 12}

// shortenNames shortens the longest names of a table until its rows are no wider than width
// without their notes.
func (t table) shortenNames(width int) {
	widths := make([]int, len(t.heading))
	for _, row := range slices.Concat([][]string{t.heading}, t.rows) {
		for i, text := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	if t.hasNotes() {
		widths = widths[:len(widths)-1]
	}
	longest := slices.Max(widths)
	for ; longest > 0; longest-- {
		total := 2 * (len(widths) - 1)
		for i, w := range widths {
			total += t.limit(i, w, longest)
		}
		if total <= width {
			break
		}
	}
	for _, row := range t.rows {
		for i := range widths {
			row[i] = middle(row[i], t.limit(i, widths[i], longest))
		}
	}
}

// limit returns how wide a column is if the longest names have a width.
func (t table) limit(column, width, longest int) int {
	if least, ok := leastWidths[t.heading[column]]; ok {
		return min(width, max(longest, least))
	}
	return width
}

// shortenSandboxes shortens the IDs of the column SANDBOX to the prefix that container
// runtimes show and accept.
func (t table) shortenSandboxes() {
	const prefix = 13
	i := slices.Index(t.heading, "SANDBOX")
	for _, row := range t.rows {
		if i >= 0 && utf8.RuneCountInString(row[i]) > prefix {
			row[i] = string([]rune(row[i])[:prefix]) + "…"
		}
	}
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
