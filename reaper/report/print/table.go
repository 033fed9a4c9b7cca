package print

import (
	"bytes"
	"cmp"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A table is a heading, rows with one cell for each column of the heading, and lines below
// them.
type table struct {
	heading []string
	rows    [][]string
	below   []string
	folded  bool // some lines stand for rows that --all shows
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
// the lines below. Names are shortened to the width, and IDs too; nothing is if it is 0.
func (t table) lines(width int, color bool) []string {
	var lines []string
	if len(t.rows) > 0 {
		rows := make([][]string, 1+len(t.rows))
		for i, heading := range t.heading {
			if i > 0 && !slices.ContainsFunc(t.rows, func(row []string) bool { return row[i] != "" }) {
				continue
			}
			rows[0] = append(rows[0], heading)
			for at, row := range t.rows {
				rows[at+1] = append(rows[at+1], shortened(heading, cell(row[i]), width))
			}
		}
		lines = aligned(rows)
	}
	for i := range lines {
		if color {
			lines[i] = paintRow(lines[i], lines[0])
		}
	}
	for _, line := range t.below {
		lines = append(lines, cell(line))
	}
	return lines
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

// maxName is the width of a name on a terminal, in characters. An address has at most 39.
const maxName = 40

// shortened returns the cell of a column as it is on a terminal: a long name gets an ellipsis
// in its middle, and a sandbox ID is cut to the prefix that container runtimes show and accept.
func shortened(heading, text string, width int) string {
	const prefix = 13
	switch {
	case width == 0:
	case heading == "IP" || heading == "POOL" || heading == "POD":
		return middle(text, width)
	case heading == "SANDBOX" && utf8.RuneCountInString(text) > prefix:
		return string([]rune(text)[:prefix]) + "…"
	}
	return text
}

// middle shortens a text to a width with an ellipsis in its middle: names begin and end with
// what tells them apart.
func middle(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	left := (width - 1) / 2
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
	"released": green, "restored": green, "planned": yellow, "orphan": yellow, "suspected": yellow,
	"refused": red, "changed": yellow, "returned": yellow, "deleting": yellow, "taken": yellow, "kept": dim, "present": dim,
}

// paint returns a word in its colour, if it has one and colours are wanted.
func paint(word string, color bool) string {
	if code := palette[word]; color && code != "" {
		return code + word + reset
	}
	return word
}

// paintRow returns the line of a row with colours in the columns whose cells are words of
// this program. A word from a store may look like one of them, but gets no colour.
func paintRow(line, heading string) string {
	for _, column := range []string{"OUTCOME", "VERDICT", "STATUS"} { // from right to left
		at, runes := strings.Index(heading, column), []rune(line)
		if at < 0 || at >= len(runes) {
			continue
		}
		word, _, _ := strings.Cut(string(runes[at:]), " ")
		line = string(runes[:at]) + paint(word, true) + strings.TrimPrefix(string(runes[at:]), word)
	}
	return line
}

// unknown stands for a figure that is not known. It is never 0.
const unknown = "unknown"

// sizeOf returns a number of addresses that may be unknown.
func sizeOf(n *big.Int) string {
	if n == nil {
		return unknown
	}
	return n.String()
}

// clock returns a time in UTC, or nothing.
func clock(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
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
