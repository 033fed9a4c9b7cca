package print

import (
	"fmt"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// viewOfRestore returns the view of the report of a restore.
func viewOfRestore(r report.RestoreReport) view {
	return view{
		value: r,
		now:   r.Run.FinishedAt,
		head: []notice{
			{text: restoreConclusion(r)},
			{text: strings.Join(append(ranOn(r.Run), policyOf(r.Run)), ", "), minor: true},
		},
		tables:   func(wide bool) []table { return []table{restoreTable(r, wide)} },
		caveats:  r.Run.Caveats,
		warnings: r.Warnings,
		names:    func() []string { return namesOfRestore(r) },
		states: func() string {
			return statesOf(r.Entries, func(e *report.RestoreEntry) report.Fate { return e.Outcome })
		},
	}
}

// restoreTable returns one row for each address or, with all, for each record.
func restoreTable(r report.RestoreReport, all bool) table {
	t := table{heading: []string{"IP", "BACKEND", "POOL", "POD", "STATE", "NOTE"}, spare: []string{"BACKEND"}}
	for _, e := range r.Entries {
		t.rows = append(t.rows, []string{
			nameOf(e.IP, e.Key), e.Backend, e.Pool, podOf(e.Owner), e.Outcome.String(), joined(e.Error, e.Note),
		})
	}
	if !all {
		t.rows = byAddress(t.rows)
	}
	return t
}

// namesOfRestore returns the addresses that are back, but not half, or that would be in a dry run.
func namesOfRestore(r report.RestoreReport) []string {
	var names []string
	for _, e := range r.Entries {
		if e.Error == "" && (e.Outcome == report.Restored || e.Outcome == report.Restorable) {
			names = append(names, e.IP)
		}
	}
	return addresses(names)
}

// restoreConclusion returns the report in one sentence.
func restoreConclusion(r report.RestoreReport) string {
	s := r.Summary
	records := printable.Counted(s.Records, "allocation")
	if n := r.Addresses().Records; n != s.Records {
		records += fmt.Sprintf(" (%s)", printable.Counted(n, "address"))
	}
	if r.Journal.ID != "" { // a damaged journal may have none
		records += " of run " + r.Journal.ID
	}
	if only := r.Run.Selection.String(); only != "" {
		records += " and of " + only
	}
	if r.Run.DryRun {
		return fmt.Sprintf("dry run: %d of %s would be put back (%d already there, %d taken, %d failed), nothing was written",
			s.Planned, records, s.Present, s.Taken, s.Failed)
	}
	return fmt.Sprintf("put back %d of %s (%d already there, %d taken, %d failed)",
		s.Restored, records, s.Present, s.Taken, s.Failed)
}
