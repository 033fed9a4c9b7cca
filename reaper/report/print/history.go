package print

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// maxPools is the largest number of pools that a row of a history names.
const maxPools = 5

// viewOfHistory returns the view of a history.
func viewOfHistory(h report.History, by report.RunInfo, all bool) view {
	return view{
		value:      h,
		head:       []notice{{text: historyHead(h)}},
		tables:     func(wide bool) []table { return historyTables(h, wide || all) },
		caveats:    h.Warnings,
		conclusion: historyConclusion(h, by),
		names:      func() []string { return namesOfHistory(h) },
	}
}

func namesOfHistory(h report.History) []string {
	var runs, ips []string
	for _, r := range h.Runs {
		runs = append(runs, r.ID)
		for _, e := range r.Entries {
			ips = append(ips, e.IP)
		}
	}
	if ips != nil {
		return addresses(ips)
	}
	return runs
}

// historyTables returns a table of the runs. If one run was asked for, it has a second
// table, of its allocations.
func historyTables(h report.History, wide bool) []table {
	runs := table{heading: []string{"RUN", "STARTED", "BY", "VERSION", "RECORDED", "POOLS"}}
	entries := table{heading: []string{"IP", "BACKEND", "POOL", "POD"}}
	if wide {
		entries.heading = append(entries.heading, "NODE", "INTERFACE", "SANDBOX")
	}
	for _, r := range h.Runs {
		runs.rows = append(runs.rows, []string{
			r.ID, clock(&r.StartedAt), r.By, r.Version, strconv.Itoa(r.Recorded), poolsOf(r, wide),
		})
		for _, e := range r.Entries {
			row := []string{nameOf(e.IP, e.Key), e.Backend, e.Pool, podOf(e.Owner)}
			if wide {
				row = append(row, e.Owner.Node, e.Owner.Interface, e.Owner.Sandbox)
			}
			entries.rows = append(entries.rows, row)
		}
	}
	return []table{runs, entries}
}

// poolsOf names the pools of a run, those with most allocations first.
func poolsOf(r journal.PastRun, all bool) string {
	var names []string
	left := r.Recorded
	for i, p := range r.Pools {
		if i == maxPools && !all {
			return fmt.Sprintf("%s; %d in %d other pools", strings.Join(names, "; "), left, len(r.Pools)-i)
		}
		names = append(names, fmt.Sprintf("%s %s: %d", p.Backend, p.Pool, p.Recorded))
		left -= p.Recorded
	}
	return strings.Join(names, "; ")
}

// historyHead says how many runs there are, and what the figures mean.
func historyHead(h report.History) string {
	where := "namespace " + h.StateNamespace
	if h.Node != "" {
		where = h.StateDir + " of node " + h.Node
	}
	switch {
	case len(h.Runs) == 0:
		return "no run has a journal in " + where
	case h.Runs[0].Entries != nil:
		return fmt.Sprintf("recorded before the releases: %d allocations; one whose owner came back was kept", h.Runs[0].Recorded)
	}
	return fmt.Sprintf("runs with a journal in %s: %d; RECORDED counts what a run was about to release", where, len(h.Runs))
}

// historyConclusion returns a command that tells more.
func historyConclusion(h report.History, by report.RunInfo) []string {
	if len(h.Runs) == 0 {
		return nil
	}
	by.ID = h.Runs[0].ID
	if h.Runs[0].Entries != nil {
		return []string{"compare them with the stores by: " + CommandOn("restore", by) + " --dry-run"}
	}
	return []string{"list the addresses of the latest by: " + CommandOn("history", by)}
}
