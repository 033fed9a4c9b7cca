package print

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

func printTable(w io.Writer, v view) error {
	return printLines(w, append(textLines(v, false), inLines(v.conclusion)...))
}

func printWide(w io.Writer, v view) error {
	return printLines(w, append(textLines(v, true), inLines(v.conclusion)...))
}

// maxPage is the most bytes of a block of code for a comment. One on GitHub has at most
// 65,536 characters.
const maxPage = 60_000

// printMarkdown prints what printTable prints, as a block of code. It leaves out the lines
// before the conclusion for which there is no room, and says so.
func printMarkdown(w io.Writer, v view) error {
	const fence, room = "```", maxPage - 200 // for the fences and the sentence about what is left out
	v.color = false
	lines, conclusion := textLines(v, false), inLines(v.conclusion)
	left := room - len(inCode(strings.Join(conclusion, "\n")))
	for i, line := range lines {
		if left -= len(inCode(line)) + 1; left < 0 {
			lines = append(lines[:i], fmt.Sprintf("… %s left out, because a comment holds at most %s bytes: -o json --all has everything",
				printable.Counted(len(lines)-i, "line"), printable.Thousands(maxPage)))
			break
		}
	}
	text := inCode(strings.Join(append(lines, conclusion...), "\n"))
	return printLines(w, []string{fence, text, fence})
}

// inCode returns a text without the character that could end a block of code.
func inCode(text string) string { return strings.ReplaceAll(text, "`", `\x60`) }

// printNames prints addresses, one per line.
func printNames(w io.Writer, v view) error { return printLines(w, inLines(v.names())) }

// printHead prints the notices that are not minor, and how to undo what was done.
func printHead(w io.Writer, v view) error {
	v.head = slices.DeleteFunc(slices.Clone(v.head), func(n notice) bool { return n.minor })
	return printLines(w, append(headLines(v), inLines(v.undo)...))
}

// textLines returns the lines above the conclusion: the notices, the tables and the warnings.
func textLines(v view, wide bool) []string {
	lines := headLines(v)
	width, folded := maxName, false
	switch {
	case v.noTrunc:
		width = 0
	case wide:
		width = maxCell
	}
	for _, t := range v.tables(wide) {
		if below := t.lines(width, v.color); len(below) > 0 {
			lines = append(append(lines, ""), below...)
		}
		folded = folded || t.folded
	}
	if folded {
		lines = append(lines, "", "… marks rows left out: -o wide or --all shows them")
	}
	if len(v.warnings)+len(v.conclusion) > 0 {
		lines = append(lines, "")
	}
	return append(lines, warningLines(v.warnings, v.color)...)
}

// warningLines returns one line for each warning.
func warningLines(warnings []string, color bool) []string {
	lines := make([]string, len(warnings))
	for i, warning := range warnings {
		lines[i] = paint("warning:", color) + " " + printable.Line(warning)
	}
	return lines
}

// headLines returns one line for each caveat, and then one for each notice.
func headLines(v view) []string {
	lines := warningLines(v.caveats, v.color)
	for _, n := range v.head {
		line := cell(n.text)
		if n.label != "" {
			line = paint(n.label, v.color) + " " + line
		}
		lines = append(lines, line)
	}
	return lines
}

// inLines returns each text in one printable line.
func inLines(texts []string) []string {
	lines := make([]string, len(texts))
	for i, text := range texts {
		lines[i] = printable.Line(text)
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
