package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// formats are the report's forms, by the name that --output takes.
var formats = map[string]func(io.Writer, reaper.Report) error{
	"table":    func(w io.Writer, r reaper.Report) error { return printText(w, r, false) },
	"wide":     func(w io.Writer, r reaper.Report) error { return printText(w, r, true) },
	"markdown": printMarkdown,
	"json":     printJSON,
	"yaml":     printYAML,
}

// checkOutput finds a format that there is not.
func checkOutput(format string) error {
	if formats[format] == nil {
		return &usageError{fmt.Errorf("--output: unknown format %q", format), "use table, wide, json, yaml or markdown"}
	}
	return nil
}

// show prints a report, with what is in use only if that is asked for.
func show(w io.Writer, format string, all bool, r reaper.Report) error {
	if !all && format != "wide" {
		r = r.Brief()
	}
	return formats[format](w, r)
}

func printJSON(w io.Writer, r reaper.Report) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// A table is a heading and rows of as many cells.
type table struct {
	heading []string
	rows    [][]string
}

// tables are the report as people read it.
func tables(r reaper.Report, wide bool) []table {
	backends := table{heading: []string{"BACKEND", "STATUS", "RESERVATIONS", "IN USE", "HELD", "SUSPECTED", "PLANNED", "RELEASED", "CHANGED", "FAILED", "MESSAGE"}}
	for _, b := range r.Backends {
		backends.rows = append(backends.rows, []string{
			b.Name, b.Status.String(), strconv.Itoa(b.Reservations), strconv.Itoa(b.InUse), strconv.Itoa(b.Held),
			strconv.Itoa(b.Suspected), strconv.Itoa(b.Planned), strconv.Itoa(b.Released), strconv.Itoa(b.Changed),
			strconv.Itoa(b.Failed), b.Message,
		})
	}
	pools := table{heading: []string{"POOL", "RANGE", "CAPACITY", "BEFORE", "AFTER"}}
	for _, p := range r.Pools {
		size := "unknown"
		if p.Capacity != nil {
			size = p.Capacity.String()
		}
		pools.rows = append(pools.rows, []string{
			p.Name, p.Range, size, strconv.Itoa(p.AllocatedBefore), strconv.Itoa(p.AllocatedAfter),
		})
	}
	entries := table{heading: []string{"IP", "BACKEND", "POOL", "POD", "VERDICT", "REASON", "OUTCOME", "NOTE"}}
	if wide {
		entries.heading = append(entries.heading, "NODE", "INTERFACE", "SANDBOX", "FIRST SEEN", "DUE")
	}
	for _, e := range r.Entries {
		entries.rows = append(entries.rows, entryRow(e, wide))
	}
	return []table{backends, pools, entries}
}

// entryRow is one line of the last table.
func entryRow(e reaper.Entry, wide bool) []string {
	ip := e.IP
	if ip == "" {
		ip = "key " + e.Key
	}
	note := e.Note
	switch {
	case e.Error != "":
		note = e.Error
	case !wide && e.Verdict == reaper.Suspected:
		note = strings.TrimLeft(note+", due "+clock(e.Due), ", ")
	}
	row := []string{
		ip, e.Backend, e.Pool, strings.Trim(e.Owner.Namespace+"/"+e.Owner.Pod, "/"),
		e.Verdict.String(), string(e.Reason), string(e.Outcome), note,
	}
	if wide {
		row = append(row, e.Owner.Node, e.Owner.Interface, e.Owner.Sandbox, clock(e.FirstSeen), clock(e.Due))
	}
	return row
}

// clock is a time for a column; nothing for none.
func clock(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// conclusion is the report in one sentence.
func conclusion(r reaper.Report) string {
	s := r.Summary
	if r.Run.DryRun {
		return fmt.Sprintf("dry run: %d of %d reservations would be released, nothing was written", s.Planned, s.Reservations)
	}
	return fmt.Sprintf("released %d of %d reservations (%d planned, %d changed meanwhile, %d failed)",
		s.Released, s.Reservations, s.Planned, s.Changed, s.Failed)
}

// printText prints columns for a terminal.
func printText(w io.Writer, r reaper.Report, wide bool) error {
	var text bytes.Buffer
	tabs := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, t := range tables(r, wide) {
		if len(t.rows) == 0 {
			continue
		}
		for _, row := range append([][]string{t.heading}, t.rows...) {
			for i, cell := range row {
				row[i] = visible(cell)
			}
			fmt.Fprintln(tabs, strings.Join(row, "\t"))
		}
		if err := tabs.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(&text)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintln(&text, "warning:", visible(warning))
	}
	fmt.Fprintln(&text, conclusion(r))
	// An empty last cell leaves the padding of the one before it.
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// printMarkdown prints the tables for an issue or a chat.
func printMarkdown(w io.Writer, r reaper.Report) error {
	for _, t := range tables(r, false) {
		if len(t.rows) == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(t.heading, " | "), strings.Repeat(" --- |", len(t.heading)))
		for _, row := range t.rows {
			for i, cell := range row {
				row[i] = markdown.Replace(visible(cell))
			}
			fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		}
		fmt.Fprintln(w)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "**Warning:** %s\n\n", markdown.Replace(visible(warning)))
	}
	_, err := fmt.Fprintln(w, conclusion(r))
	return err
}

// markdown keeps what a store contains from being taken for markup.
var markdown = strings.NewReplacer(`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "~", `\~`,
	"[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "&", `\&`)

// visible keeps what a store contains from moving the reader's cursor or the
// columns.
func visible(cell string) string {
	return strings.Map(func(c rune) rune {
		if strconv.IsPrint(c) {
			return c
		}
		return ' '
	}, cell)
}
