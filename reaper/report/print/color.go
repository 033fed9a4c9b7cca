package print

import "strings"

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
