package print

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A table is a heading, rows with one cell for each column of the heading, and lines below
// them.
type table struct {
	heading []string
	rows    [][]string
	below   []string
	folded  bool     // some lines stand for rows that --all shows
	spare   []string // the columns that a narrow terminal does not get, the first one first
}

// say adds a line below the rows.
func (t *table) say(format string, args ...any) {
	t.below = append(t.below, fmt.Sprintf(format, args...))
}

// fold adds a line in place of many similar rows.
func (t *table) fold(format string, args ...any) {
	t.say("… %s", fmt.Sprintf(format, args...))
	t.folded = true
}

// lines returns the heading of a table and its rows, without the columns that are empty, and
// the lines below. If the view has a width, the table fits it, unless it is wide.
func (t table) lines(v view, wide bool) []string {
	var lines []string
	var columns [][]string
	for i, heading := range t.heading {
		column := []string{heading}
		for _, row := range t.rows {
			column = append(column, v.cell(heading, row[i]))
		}
		if i == 0 || slices.ContainsFunc(t.rows, func(row []string) bool { return row[i] != "" }) {
			columns = append(columns, column)
		}
	}
	if v.width > 0 && !wide {
		columns = t.fit(columns, v.width)
	}
	if len(t.rows) > 0 {
		lines = aligned(columns)
	}
	for i := range lines {
		if v.color {
			lines[i] = paintRow(lines[i], lines[0])
		}
	}
	for _, line := range t.below {
		lines = append(lines, aged(cell(line), v.now))
	}
	return lines
}

// leastCell is the width to which the cells of sentences may be shortened.
const leastCell = 16

// sentences are the columns that nobody has to copy. A sentence begins with its point.
var sentences = []string{"NOTE", "MESSAGE", "BY"}

// fit returns columns that fit a width, if whole names do: sentences are shortened and, if that is not enough,
// the columns of t.spare are left out.
func (t table) fit(columns [][]string, width int) [][]string {
	widest := make(map[string]int) // by the heading
	for _, column := range columns {
		for _, text := range column {
			widest[column[0]] = max(widest[column[0]], utf8.RuneCountInString(text))
		}
	}
	widthOf := func(heading string, limit int) int {
		if slices.Contains(sentences, heading) {
			return min(widest[heading], limit)
		}
		return widest[heading]
	}
	for spare := t.spare; ; spare = spare[1:] {
		limit, total := width+1, width+1
		for total > width && limit > leastCell {
			limit, total = limit-1, -2
			for _, column := range columns {
				total += widthOf(column[0], limit) + 2
			}
		}
		if total > width && len(spare) > 0 {
			columns = slices.DeleteFunc(columns, func(column []string) bool { return column[0] == spare[0] })
			continue
		}
		for _, column := range columns {
			most := widthOf(column[0], limit)
			for at, text := range column {
				column[at] = shortened(text, most, most-1)
			}
		}
		return columns
	}
}

// aligned returns the lines of columns, which have the same number of cells.
func aligned(columns [][]string) []string {
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for at := range columns[0] {
		for _, column := range columns {
			_, _ = w.Write([]byte(column[at] + "\t")) // a buffer takes all
		}
		_, _ = w.Write([]byte("\n"))
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

// maxKey is the width of a key in place of an address, which no command takes.
const maxKey = 24

// cell returns a cell of a column. On a terminal, the key in place of an address is cut.
func (v view) cell(heading, text string) string {
	text = aged(cell(text), v.now)
	if v.width > 0 && heading == "IP" && strings.HasPrefix(text, "key ") {
		return shortened(text, maxKey, maxKey/2)
	}
	return text
}

// shortened shortens a text to a width with an ellipsis after so many characters.
func shortened(text string, width, left int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:left]) + "…" + string(runes[len(runes)-(width-1-left):])
}

// The labels of notices.
const (
	refusedLabel = "REFUSED"
	failedLabel  = "FAILED"
)

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	dim    = "\x1b[2m"
	alarm  = "\x1b[1;31m"
	reset  = "\x1b[0m"
)

// palette has the colours of our words.
var palette = map[string]string{
	refusedLabel: alarm, failedLabel: alarm, "warning:": yellow,
	"failed": red, "partial": yellow, "ok": green, "skipped": dim,
	"released": green, "restored": green, "planned": yellow, "due": yellow, "waiting": yellow,
	"changed": yellow, "returned": yellow, "deleting": yellow, "taken": yellow, "in use": dim, "present": dim,
}

// paint returns a word in its colour, if it has one and colours are wanted.
func paint(word string, color bool) string {
	if code := palette[word]; color && code != "" {
		return code + word + reset
	}
	return word
}

// paintRow returns the line of a row with a colour in the column whose cells are words of
// this program. A word from a store may look like one of them, but gets no colour.
func paintRow(line, heading string) string {
	at, runes := strings.Index(heading, "STAT"), []rune(line) // STATE or STATUS
	if at < 0 || at >= len(runes) {
		return line
	}
	word, _, _ := strings.Cut(string(runes[at:]), "  ")
	return string(runes[:at]) + paint(word, true) + strings.TrimPrefix(string(runes[at:]), word)
}

// unknown stands for a figure that is not known. It is never 0.
const unknown = "unknown"

// clock returns a time in UTC, or nothing.
func clock(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// stamp matches the times that clock and judge.Stamp write.
var stamp = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z`)

// aged adds to each time in a text how far it is from now, as kubectl says it, if that is known and more
// than a minute.
func aged(text string, now time.Time) string {
	if now.IsZero() || !strings.Contains(text, "Z") {
		return text
	}
	return stamp.ReplaceAllStringFunc(text, func(at string) string {
		t, err := time.Parse(time.RFC3339, at)
		if err != nil || t.Sub(now).Abs() < time.Minute {
			return at
		}
		if t.After(now) {
			return at + " (in " + duration.HumanDuration(t.Sub(now)) + ")"
		}
		return at + " (" + duration.HumanDuration(now.Sub(t)) + " ago)"
	})
}

// podOf returns the namespace and the name of an owner's pod, or nothing.
func podOf(o ipam.EntryOwner) string { return strings.Trim(o.Namespace+"/"+o.Pod, "/") }

// nameOf returns the address of an entry, or its key if it has no address.
func nameOf(ip, key string) string {
	if ip == "" {
		return "key " + key
	}
	return ip
}

// addresses sorts addresses and returns each once. It leaves out empty ones.
func addresses(names []string) []string {
	slices.SortFunc(names, compareIPs)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// compareIPs orders addresses by their value. Any other text comes before them.
func compareIPs(a, b string) int {
	one, _ := netip.ParseAddr(a)
	other, _ := netip.ParseAddr(b)
	return cmp.Or(one.Compare(other), cmp.Compare(a, b))
}
