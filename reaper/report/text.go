package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
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
			for i, text := range row {
				row[i] = cell(text)
			}
			fmt.Fprintln(tabs, strings.Join(row, "\t"))
		}
		if err := tabs.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(&text)
	}
	for _, warning := range v.warnings {
		fmt.Fprintln(&text, "warning:", printable.Line(warning))
	}
	for _, line := range v.conclusion {
		fmt.Fprintln(&text, printable.Line(line))
	}
	// tabwriter leaves padding before an empty last cell.
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
