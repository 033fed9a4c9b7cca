// Package report prints what a run or a restore did: as table, wide, JSON, YAML or
// Markdown.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A paper is what is printed, in whatever form.
type reportView struct {
	value      any // whose JSON is a contract
	tables     func(wide bool) []table
	warnings   []string
	conclusion string
}

// formats are the forms, by the name that --output takes.
var formats = map[string]func(io.Writer, reportView) error{
	"table":    func(w io.Writer, p reportView) error { return printText(w, p, false) },
	"wide":     func(w io.Writer, p reportView) error { return printText(w, p, true) },
	"markdown": printMarkdown,
	"json":     printJSON,
	"yaml":     printYAML,
}

// Formats returns the names of the formats, sorted.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

func printJSON(w io.Writer, p reportView) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(p.value)
}

// A table is a heading and rows of as many cells.
type table struct {
	heading []string
	rows    [][]string
}

// printText prints columns for a terminal.
func printText(w io.Writer, p reportView, wide bool) error {
	var text bytes.Buffer
	tabs := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, t := range p.tables(wide) {
		if len(t.rows) == 0 {
			continue
		}
		for _, row := range append([][]string{t.heading}, t.rows...) {
			for i, cell := range row {
				row[i] = Visible(cell)
			}
			fmt.Fprintln(tabs, strings.Join(row, "\t"))
		}
		if err := tabs.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(&text)
	}
	for _, warning := range p.warnings {
		fmt.Fprintln(&text, "warning:", Visible(warning))
	}
	fmt.Fprintln(&text, p.conclusion)
	// An empty last cell leaves the padding of the one before it.
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// printMarkdown prints the tables for an issue or a chat.
func printMarkdown(w io.Writer, p reportView) error {
	for _, t := range p.tables(false) {
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
	for _, warning := range p.warnings {
		fmt.Fprintf(w, "**Warning:** %s\n\n", markdown.Replace(Visible(warning)))
	}
	_, err := fmt.Fprintln(w, p.conclusion)
	return err
}

// markdown keeps what a store contains from being taken for markup.
var markdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`,
	"[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "&", `\&`)

// Visible keeps what a store contains from moving the reader's cursor or the
// columns.
func Visible(cell string) string {
	return strings.Map(func(c rune) rune {
		if strconv.IsPrint(c) {
			return c
		}
		return ' '
	}, cell)
}
