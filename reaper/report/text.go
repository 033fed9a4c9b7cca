package report

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

func printTable(w io.Writer, v reportView) error { return printText(w, v, false) }

func printWide(w io.Writer, v reportView) error { return printText(w, v, true) }

// printText prints aligned columns for a terminal.
func printText(w io.Writer, v reportView, wide bool) error {
	var text bytes.Buffer
	tabs := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, t := range v.tables(wide) {
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
	for _, warning := range v.warnings {
		fmt.Fprintln(&text, "warning:", Visible(warning))
	}
	fmt.Fprintln(&text, v.conclusion)
	// tabwriter leaves padding before an empty last cell.
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// Visible returns a text with a space in place of every character that is not
// printable. Text from a store could otherwise move the cursor of the terminal, or
// break the columns.
func Visible(text string) string {
	return strings.Map(func(c rune) rune {
		if strconv.IsPrint(c) {
			return c
		}
		return ' '
	}, text)
}
