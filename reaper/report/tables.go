package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Write prints a report, with what is in use only if that is asked for.
func Write(w io.Writer, format string, all bool, r reaper.Report) error {
	if !all && format != "wide" {
		r = r.Brief()
	}
	return formats[format](w, viewOf(r))
}

// paperOf is a report as it is printed.
func viewOf(r reaper.Report) reportView {
	return reportView{
		value:      r,
		tables:     func(wide bool) []table { return tables(r, wide) },
		warnings:   r.Warnings,
		conclusion: conclusion(r),
	}
}

// tables are the report as people read it.
func tables(r reaper.Report, wide bool) []table {
	backends := table{heading: []string{"BACKEND", "STATUS", "ENTRIES", "IN USE", "HELD", "SUSPECTED", "PLANNED", "RELEASED", "CHANGED", "FAILED", "MESSAGE"}}
	for _, b := range r.Backends {
		backends.rows = append(backends.rows, []string{
			b.Name, b.Status.String(), strconv.Itoa(b.Entries), strconv.Itoa(b.InUse), strconv.Itoa(b.Held),
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
		entries.heading = append(entries.heading, "NODE", "INTERFACE", "SANDBOX", "FIRST SEEN", "DUE", "EVIDENCE")
	}
	for _, e := range r.Entries {
		entries.rows = append(entries.rows, entryRow(e, wide))
	}
	return []table{backends, pools, entries}
}

// entryRow is one line of the last table.
func entryRow(e reaper.Entry, wide bool) []string {
	note := e.Note
	switch {
	case e.Error != "":
		note = e.Error
	case !wide && e.Verdict == reaper.Suspected:
		note = strings.TrimLeft(note+", due "+clock(e.Due), ", ")
	}
	row := []string{
		nameOf(e.IP, e.Key), e.Backend, e.Pool, podOf(e.Owner),
		e.Verdict.String(), string(e.Reason), string(e.Outcome), note,
	}
	if wide {
		row = append(row, e.Owner.Node, e.Owner.Interface, e.Owner.Sandbox, clock(e.FirstSeen), clock(e.Due), evidenceOf(e))
	}
	return row
}

// evidenceOf is the evidence for a column.
func evidenceOf(e reaper.Entry) string {
	said := make([]string, len(e.Evidence))
	for i, one := range e.Evidence {
		said[i] = one.Source + ": " + one.Says
	}
	return strings.Join(said, "; ")
}

// nameOf is what an entry is called in a column: by its address if it has one.
func nameOf(ip, key string) string {
	if ip == "" {
		return "key " + key
	}
	return ip
}

// podOf is an owner's pod for a column; nothing for none.
func podOf(o reaper.EntryOwner) string { return strings.Trim(o.Namespace+"/"+o.Pod, "/") }

// clock is a time for a column; nothing for none.
func clock(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// conclusion is the report in one sentence, and how to undo what was done.
func conclusion(r reaper.Report) string {
	s := r.Summary
	if r.Run.DryRun {
		return fmt.Sprintf("dry run: %d of %d allocations would be released, nothing was written", s.Planned, s.Entries)
	}
	text := fmt.Sprintf("released %d of %d allocations (%d planned, %d changed meanwhile, %d failed)",
		s.Released, s.Entries, s.Planned, s.Changed, s.Failed)
	if s.Released > 0 {
		text += "\nundo it by: ip-reaper restore --run " + r.Run.ID
	}
	return text
}
