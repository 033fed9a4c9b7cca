package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// viewOf returns the view of the report of a run.
func viewOf(r reaper.Report) reportView {
	return reportView{
		value:      r,
		tables:     func(wide bool) []table { return tables(r, wide) },
		warnings:   r.Warnings,
		conclusion: conclusion(r),
	}
}

// tables returns a table of the backends, one of the pools, and one of the entries.
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

// maxCell is the largest size of a cell for people, in bytes. A column is as wide as its
// widest cell.
const maxCell = 1 << 10

// cell returns a text in one printable line of limited size.
func cell(text string) string { return printable.Shorten(printable.Line(text), maxCell) }

// entryRow returns the row of an entry.
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

// evidenceOf returns the evidence of an entry in one line.
func evidenceOf(e reaper.Entry) string {
	said := make([]string, len(e.Evidence))
	for i, one := range e.Evidence {
		said[i] = one.Source + ": " + one.Says
	}
	return strings.Join(said, "; ")
}

// nameOf returns the address of an entry, or its key if it has no address.
func nameOf(ip, key string) string {
	if ip == "" {
		return "key " + key
	}
	return ip
}

// podOf returns the namespace and the name of an owner's pod, or nothing.
func podOf(o reaper.EntryOwner) string { return strings.Trim(o.Namespace+"/"+o.Pod, "/") }

// clock returns a time in UTC, or nothing.
func clock(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// conclusion returns the report in one sentence, and a line with the command that undoes
// the releases.
func conclusion(r reaper.Report) []string {
	s := r.Summary
	if r.Run.DryRun {
		written := "nothing was written"
		if r.Run.Remember {
			written = "no store was written"
		}
		return []string{fmt.Sprintf("dry run: %d of %d allocations would be released, %s", s.Planned, s.Entries, written)}
	}
	lines := []string{fmt.Sprintf("released %d of %d allocations (%d planned, %d changed meanwhile, %d failed)",
		s.Released, s.Entries, s.Planned, s.Changed, s.Failed)}
	if s.Released > 0 {
		lines = append(lines, "undo it by: ip-reaper restore --run "+r.Run.ID)
	}
	return lines
}
