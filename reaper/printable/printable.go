// Package printable is the edge of every output. Text that comes from a store, a journal
// or a server may have characters that move the cursor of a terminal, begin a new line of
// a log, or hide or reorder what is next to them. This package replaces each of them with
// an escape sequence.
//
// A character is printable if it is a letter, mark, number, punctuation, symbol or ASCII
// space, and takes up room. So control characters, line separators, direction marks,
// zero-width characters, unassigned characters, and bytes that are not UTF-8 are not.
//
// [Near] and [Meant] find the name that a mistyped one may stand for.
package printable

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Line returns a text in one printable line, with the escapes of a Go string: \n, \x1b,
// \u202e. A backslash of the text stays as it is.
func Line(text string) string { return string(goText.rewrite([]byte(text))) }

// Lines returns a writer of text of several lines. It escapes as Line does, and keeps line
// breaks and tabs.
func Lines(w io.Writer) io.Writer { return writer{w, goLines} }

// JSON returns a writer of JSON. The decoded values stay the same. No character may be
// split between two writes.
func JSON(w io.Writer) io.Writer { return writer{w, jsonText} }

// Shorten returns a text as UTF-8 of at most limit bytes. It ends a longer text with an
// ellipsis. The limit must be at least 3.
func Shorten(text string, limit int) string {
	const more = "…"
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len(more)], "") + more
}

// A style is a way to escape.
type style struct {
	keep   string                          // characters that stay although they are not printable
	escape func(c rune, first byte) string // first is the first byte of the character
}

var (
	goText   = style{"", goEscape}
	goLines  = style{"\n\t", goEscape}
	jsonText = style{"\n", jsonEscape}
)

// rewrite returns the text with an escape in place of each character that is neither
// printable nor kept. It returns the text itself if there is none.
func (s style) rewrite(text []byte) []byte {
	var out []byte
	done := 0 // up to here, the text is in out
	for i, n := 0, 0; i < len(text); i += n {
		if n = 1; ' ' <= text[i] && text[i] <= '~' {
			continue
		}
		var c rune
		c, n = utf8.DecodeRune(text[i:])
		if broken := c == utf8.RuneError && n == 1; !broken && (printable(c) || strings.ContainsRune(s.keep, c)) {
			continue
		}
		out = append(out, text[done:i]...)
		out = append(out, s.escape(c, text[i])...)
		done = i + n
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

// printable reports whether a character is printable and takes up room.
func printable(c rune) bool {
	return strconv.IsPrint(c) && (c <= unicode.MaxLatin1 ||
		!unicode.In(c, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point))
}

// goEscape returns the escape of a Go string. A byte that is not UTF-8 stays visible.
func goEscape(c rune, first byte) string {
	if c == utf8.RuneError {
		return fmt.Sprintf(`\x%02x`, first)
	}
	quoted := strconv.QuoteRuneToASCII(c)
	return quoted[1 : len(quoted)-1]
}

// jsonEscape returns the escape of a JSON string.
func jsonEscape(c rune, _ byte) string {
	var escape strings.Builder
	for _, unit := range utf16.AppendRune(nil, c) {
		fmt.Fprintf(&escape, `\u%04x`, unit)
	}
	return escape.String()
}

// A writer escapes in a style.
type writer struct {
	to    io.Writer
	style style
}

// Write implements io.Writer.
func (w writer) Write(p []byte) (int, error) {
	if _, err := w.to.Write(w.style.rewrite(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// MaxNamed is how many things Some names.
const MaxNamed = 5

// Some returns the first names for a sentence, and how many more there are.
func Some(names []string) string {
	if more := len(names) - MaxNamed; more > 0 {
		return strings.Join(names[:MaxNamed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// Thousands returns a count with commas between its thousands.
func Thousands(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Counted returns a number and its noun, such as "2 pools" or "2 addresses".
func Counted(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "s"):
		noun += "e"
	}
	return Thousands(n) + " " + noun + "s"
}

// MaxText is the largest size of an error in a report, in bytes. An error may quote the
// message of a webhook or the page of a proxy.
const MaxText = 4 << 10

// goWords are the words of Go's packages for what the user or the program did.
var goWords = strings.NewReplacer(
	"context deadline exceeded (Client.Timeout exceeded while awaiting headers)", "no answer in time",
	"net/http: request canceled (Client.Timeout exceeded while awaiting headers)", "no answer in time",
	"context deadline exceeded (Client.Timeout or context cancellation while reading body)", "the answer did not end in time",
	"context deadline exceeded", "timed out",
	"context canceled", "interrupted",
)

// Plain returns the text of an error in the user's words: "interrupted" for what Go
// calls "context canceled".
func Plain(text string) string { return goWords.Replace(text) }

// Error returns the text of an error for a report: plain, and of at most MaxText bytes. It may
// have characters that are not printable.
func Error(err error) string { return Shorten(Plain(err.Error()), MaxText) }
