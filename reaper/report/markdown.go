package report

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// printMarkdown prints the tables for an issue or a chat.
func printMarkdown(w io.Writer, v reportView) error {
	for _, t := range v.tables(false) {
		if len(t.rows) == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(t.heading, " | "), strings.Repeat(" --- |", len(t.heading)))
		for _, row := range t.rows {
			for i, text := range row {
				row[i] = markdown(cell(text))
			}
			fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		}
		fmt.Fprintln(w)
	}
	for _, warning := range v.warnings {
		fmt.Fprintf(w, "**Warning:** %s\n\n", markdown(printable.Line(warning)))
	}
	for _, line := range v.conclusion {
		if _, err := fmt.Fprintln(w, markdown(printable.Line(line))); err != nil {
			return err
		}
	}
	return nil
}

// markdown returns a printable line without markup. A text with a link, a mention or a
// reference becomes code, because no escape keeps GitHub from making those.
func markdown(text string) string {
	if links.MatchString(text) {
		return "`" + inCode.Replace(text) + "`"
	}
	return inText.Replace(text)
}

var (
	links = regexp.MustCompile(`(?i)[@#]|://|www\.`)

	// inText escapes the characters that could become markup, and inCode those that could
	// end the code or the cell.
	inText = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`, "$", `\$`,
		"[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "&", `\&`)
	inCode = strings.NewReplacer("`", `\x60`, "|", `\x7c`, "<", `\x3c`)
)
