package report

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// maxWidth is the width of the default table, in characters.
const maxWidth = 120

// maxName is the width of a name in a sentence above or below a table.
const maxName = 40

// gap separates two columns.
const gap = "  "

// A column says how a column of a table becomes narrower. The zero column stays as it is.
type column struct {
	min     int                      // the least width; 0: its texts are not shortened
	shorten func(string, int) string // to a width
	same    bool                     // if all of its cells are the same, a line above the table may have it
	full    bool                     // a text that is shortened is repeated in full below its row
	spare   bool                     // without it, the table still says which entry it is and what became of it
}

// columns are the columns that can become narrower, by their headings.
var columns = map[string]column{
	"IP":      {min: 24, shorten: middle}, // of the cells with a key
	"BACKEND": {same: true, spare: true},
	"POOL":    {min: 12, shorten: middle, same: true},
	"POD":     {min: 16, shorten: middle},
	"NODE":    {min: 12, shorten: middle},
	"VERDICT": {same: true, spare: true},
	"NOTE":    {min: 16, shorten: end, full: true},
	"MESSAGE": {min: 16, shorten: end, full: true},
}

// fitting says how a table is fitted into a terminal.
type fitting struct {
	width    int  // 0: as wide as its cells
	sandbox  bool // sandbox IDs are shortened as crictl does
	optional bool // empty columns are left out
}

// fit returns the table in at most a width, as far as that is possible, and the cells that
// all of its rows have in common, if their columns were left out for that.
func fit(t table, f fitting) (table, string) {
	t = printableCells(t)
	if f.sandbox {
		t = shortSandboxes(t)
	}
	if f.optional {
		for i := len(t.heading) - 1; i > 0; i-- {
			if len(t.rows) > 0 && !slices.ContainsFunc(t.rows, func(row []string) bool { return row[i] != "" }) {
				t = t.without(i)
			}
		}
	}
	var common []string
	for i := len(t.heading) - 1; i > 0 && f.width > 0 && t.width() > f.width; i-- {
		if columns[t.heading[i]].same && t.isSame(i) {
			common = append(common, strings.ToLower(t.heading[i])+" "+middle(t.rows[0][i], maxName))
			t = t.without(i)
		}
	}
	for i := len(t.heading) - 1; i > 0 && f.width > 0 && t.least() > f.width; i-- {
		if columns[t.heading[i]].spare {
			t = t.without(i)
		}
	}
	if f.width > 0 {
		t = t.narrow(f.width)
	}
	slices.Reverse(common)
	return t, strings.Join(common, ", ")
}

// printableCells returns a copy of the table whose cells are printable lines.
func printableCells(t table) table {
	rows := make([][]string, len(t.rows))
	for i, row := range t.rows {
		rows[i] = make([]string, len(row))
		for j, text := range row {
			rows[i][j] = cell(text)
		}
	}
	t.rows = rows
	return t
}

// shortSandboxes shortens the IDs of the column SANDBOX to the prefix that container
// runtimes show and accept.
func shortSandboxes(t table) table {
	const prefix = 13
	i := slices.Index(t.heading, "SANDBOX")
	for _, row := range t.rows {
		if i >= 0 {
			row[i] = end(row[i], prefix+1)
		}
	}
	return t
}

// isSame reports whether a column has the same text in several rows.
func (t table) isSame(column int) bool {
	return len(t.rows) > 1 && !slices.ContainsFunc(t.rows, func(row []string) bool {
		return row[column] != t.rows[0][column]
	})
}

// widths returns the widths of the columns.
func (t table) widths() []int {
	widths := make([]int, len(t.heading))
	for _, row := range slices.Concat([][]string{t.heading}, t.rows) {
		for i, text := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	return widths
}

// width returns the width of the table.
func (t table) width() int { return sum(t.widths()) + len(gap)*(len(t.heading)-1) }

// least returns the width of the table if each column is as narrow as it may be.
func (t table) least() int {
	widths := t.widths()
	for i := range t.heading {
		if least := t.leastOf(i); least > 0 {
			widths[i] = min(widths[i], least)
		}
	}
	return sum(widths) + len(gap)*(len(widths)-1)
}

// leastOf returns the least width of a column; 0 if it cannot become narrower. No address is
// shortened.
func (t table) leastOf(column int) int {
	least := columns[t.heading[column]].min
	if t.heading[column] != "IP" {
		return least
	}
	for _, row := range t.rows {
		if !strings.HasPrefix(row[column], keyPrefix) {
			least = max(least, utf8.RuneCountInString(row[column]))
		}
	}
	return least
}

// narrow shortens the cells of the widest columns until the table fits.
func (t table) narrow(width int) table {
	widths, least := t.widths(), make([]int, len(t.heading))
	for i := range least {
		least[i] = t.leastOf(i)
	}
	for over := t.width() - width; over > 0; over-- {
		widest := -1
		for i := range widths {
			if least[i] > 0 && widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	t.cut = make([]string, len(t.rows))
	for n, row := range t.rows {
		for i, text := range row {
			c := columns[t.heading[i]]
			if c.min > 0 {
				row[i] = c.shorten(text, widths[i])
			}
			if c.full && row[i] != text {
				t.cut[n] = text
			}
		}
	}
	return t
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

// end shortens a text to a width by an ellipsis at its end.
func end(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}

func sum(numbers []int) int {
	total := 0
	for _, n := range numbers {
		total += n
	}
	return total
}
