package report

import (
	"fmt"
	"io"
	"strings"
)

// printMarkdown prints the tables for an issue or a chat.
func printMarkdown(w io.Writer, v reportView) error {
	for _, t := range v.tables(false) {
		if len(t.rows) == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(t.heading, " | "), strings.Repeat(" --- |", len(t.heading)))
		for _, row := range t.rows {
			for i, cell := range row {
				row[i] = markdown.Replace(Visible(cell))
			}
			fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		}
		fmt.Fprintln(w)
	}
	for _, warning := range v.warnings {
		fmt.Fprintf(w, "**Warning:** %s\n\n", markdown.Replace(Visible(warning)))
	}
	_, err := fmt.Fprintln(w, v.conclusion)
	return err
}

// markdown escapes the characters with which text from a store could become markup.
var markdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`,
	"[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "&", `\&`)
