package report

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// viewOf returns the view of the report of a run.
func viewOf(r reaper.Report, o Options) reportView {
	return reportView{
		value:      r,
		head:       headOf(r),
		tables:     func(wide bool) []table { return tables(r, wide, o.All || wide) },
		warnings:   r.Warnings,
		conclusion: conclusion(r),
		names:      func() []string { return namesOf(r) },
	}
}

// tables returns a table of the backends, one of the pools, and one of the entries. With
// all, nothing is folded.
func tables(r reaper.Report, wide, all bool) []table {
	return []table{backendTable(r), poolTable(r, all), entryTable(r, wide, all)}
}

// backendTable returns one row for each store. The counts of a store that could not be
// listed are unknown. It leaves out the outcomes that no allocation has.
func backendTable(r reaper.Report) table {
	t := table{heading: []string{"BACKEND", "STATUS", "ENTRIES", "IN USE", "HELD", "SUSPECTED", "PLANNED", "RELEASED", "CHANGED", "FAILED", "MESSAGE"}}
	var sum reaper.Counts
	for _, b := range r.Backends {
		row := []string{b.Name, b.Status.String()}
		for _, n := range []int{b.Entries, b.InUse, b.Held, b.Suspected, b.Planned, b.Released, b.Changed, b.Failed} {
			row = append(row, countOf(b, n))
		}
		t.rows = append(t.rows, append(row, b.Message))
		sum.Released, sum.Changed, sum.Failed = sum.Released+b.Released, sum.Changed+b.Changed, sum.Failed+b.Failed
	}
	for heading, n := range map[string]int{"RELEASED": sum.Released, "CHANGED": sum.Changed, "FAILED": sum.Failed} {
		if n == 0 {
			t = t.without(slices.Index(t.heading, heading))
		}
	}
	return t
}

// countOf returns a count of a backend for people.
func countOf(b reaper.BackendReport, n int) string {
	switch {
	case b.Counted():
		return strconv.Itoa(n)
	case b.Status == reaper.StatusSkipped:
		return "-"
	default:
		return unknown
	}
}

// without returns the table without a column.
func (t table) without(column int) table {
	t.heading = slices.Delete(slices.Clone(t.heading), column, column+1)
	rows := make([][]string, len(t.rows))
	for i, row := range t.rows {
		rows[i] = slices.Delete(slices.Clone(row), column, column+1)
	}
	t.rows = rows
	return t
}

// withoutEmpty returns the table without its empty columns.
func (t table) withoutEmpty() table {
	for i := len(t.heading) - 1; i > 0; i-- {
		if len(t.rows) > 0 && !slices.ContainsFunc(t.rows, func(row []string) bool { return row[i] != "" }) {
			t = t.without(i)
		}
	}
	return t
}

// printable returns a copy of the table whose cells are printable lines.
func (t table) printable() table {
	rows := make([][]string, len(t.rows))
	for i, row := range t.rows {
		rows[i] = make([]string, len(row))
		for j, text := range row {
			rows[i][j] = cell(text)
		}
	}
	t.rows = rows
	return t
}

// hasNotes reports whether the last column is for sentences.
func (t table) hasNotes() bool {
	return slices.Contains([]string{"NOTE", "MESSAGE"}, t.heading[len(t.heading)-1])
}

// poolTable returns one row for each pool, those with the most leaks first. Without all,
// it folds the pools without a finding, and the rest of many.
func poolTable(r reaper.Report, all bool) table {
	t := table{heading: []string{"POOL", "RANGE", "CAPACITY", "BEFORE", "AFTER", "LEAKED", "PROTECTED", "FREE"}}
	pools := slices.Clone(r.Pools)
	slices.SortStableFunc(pools, func(a, b reaper.PoolReport) int { return findings(b) - findings(a) })
	protected := slices.ContainsFunc(pools, func(p reaper.PoolReport) bool { return p.Protected > 0 })
	shown, more, dull := pools, []reaper.PoolReport(nil), []reaper.PoolReport(nil)
	if !all {
		shown, more, dull = foldPools(pools)
	}
	for _, p := range shown {
		t.rows = append(t.rows, []string{
			p.Name, p.Range, sizeOf(p.Capacity), strconv.Itoa(p.AllocatedBefore), strconv.Itoa(p.AllocatedAfter),
			leakedIn(r, p), strconv.Itoa(p.Protected), sizeOf(p.Free),
		})
	}
	if len(more) > 0 {
		n := 0
		for _, p := range more {
			n += p.Leaked
		}
		t.folds = append(t.folds, fold{len(shown), len(more), fmt.Sprintf("and %s with findings, %s leaked in them", counted(len(more), "more pool"), printable.Thousands(n))})
	}
	if len(dull) > 0 {
		finding := " without a finding"
		if r.Leaked == nil {
			finding = "" // nothing could be found
		}
		t.folds = append(t.folds, fold{len(shown), len(dull), fmt.Sprintf("and %s%s, %s addresses used", counted(len(dull), "pool"), finding, usedOf(dull))})
	}
	if !protected {
		t = t.without(slices.Index(t.heading, "PROTECTED"))
	}
	return t
}

// leakedIn returns how many addresses of a pool have no owner. If that is not known of the
// run, it is not known of the pool.
func leakedIn(r reaper.Report, p reaper.PoolReport) string {
	if r.Leaked == nil {
		return unknown
	}
	return strconv.Itoa(p.Leaked)
}

// sizeOf returns a number of addresses that may be unknown.
func sizeOf(n *big.Int) string {
	if n == nil {
		return unknown
	}
	return n.String()
}

// clock returns a time in UTC, or nothing.
func clock(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// maxCell is the largest size of a cell for people, in bytes.
const maxCell = 1 << 10

// cell returns a text in one printable line of limited size.
func cell(text string) string { return printable.Shorten(printable.Line(text), maxCell) }

// podOf returns the namespace and the name of an owner's pod, or nothing.
func podOf(o reaper.EntryOwner) string { return strings.Trim(o.Namespace+"/"+o.Pod, "/") }

// keyPrefix begins the name of an entry without an address.
const keyPrefix = "key "

// nameOf returns the address of an entry, or its key if it has no address.
func nameOf(ip, key string) string {
	if ip == "" {
		return keyPrefix + key
	}
	return ip
}

// conclusion returns the report in one sentence, and a line with the command that undoes
// the releases.
func conclusion(r reaper.Report) []string {
	s := r.Summary
	refused := len(r.Result.Refused) > 0
	if r.Run.DryRun {
		written := "nothing was written"
		if r.Run.Remember {
			written = "no store was written"
		}
		if refused {
			return []string{fmt.Sprintf("dry run: the plan to release %d of %d allocations is refused, %s", s.Planned, s.Entries, written)}
		}
		return []string{fmt.Sprintf("dry run: %d of %d allocations would be released, %s", s.Planned, s.Entries, written)}
	}
	planned := fmt.Sprintf("%d planned", s.Planned)
	if refused {
		planned += " and refused"
	}
	lines := []string{fmt.Sprintf("released %d of %d allocations (%s, %d changed meanwhile, %d failed)",
		s.Released, s.Entries, planned, s.Changed, s.Failed)}
	if s.Released > 0 {
		lines = append(lines, undoLabel+undoCommand(r.Run))
	}
	return lines
}
