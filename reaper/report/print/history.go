package print

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// maxPools is the largest number of pools of one backend that a row of a history names.
const maxPools = 3

// viewOfHistory returns the view of a history.
func viewOfHistory(h report.History, by report.RunInfo, all bool) view {
	return view{
		value:      h,
		tables:     func(wide bool) []table { return historyTables(h, wide || all) },
		warnings:   h.Warnings,
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

// poolsOf names the pools of a run, those with most allocations first. It folds the pools of
// a backend that has many, such as one for each overlapping-range reservation.
func poolsOf(r journal.PastRun, all bool) string {
	count := make(map[string]int) // of pools, by backend
	sum := make(map[string]int)
	for _, p := range r.Pools {
		count[p.Backend]++
		sum[p.Backend] += p.Recorded
	}
	var names []string
	for _, p := range r.Pools {
		if n := count[p.Backend]; all || n <= maxPools {
			names = append(names, fmt.Sprintf("%s %s: %d", p.Backend, p.Pool, p.Recorded))
		} else if sum[p.Backend] > 0 { // its first pool
			names = append(names, fmt.Sprintf("%s: %d in %d pools, most in %s: %d", p.Backend, sum[p.Backend], n, p.Pool, p.Recorded))
			sum[p.Backend] = 0
		}
	}
	return strings.Join(names, "; ")
}

// journalsOf says where the journals of a history are.
func journalsOf(h report.History) string {
	if h.Node != "" {
		return h.StateDir + " of node " + h.Node
	}
	return "namespace " + h.StateNamespace
}

// historyConclusion returns how many runs there are, what the figures mean, and a command
// that tells more.
func historyConclusion(h report.History, by report.RunInfo) []string {
	if len(h.Runs) == 0 {
		return []string{"no run has a journal in " + journalsOf(h)}
	}
	by.ID = h.Runs[0].ID
	if h.Runs[0].Entries != nil {
		return []string{
			fmt.Sprintf("recorded before the releases: %d allocations; one whose owner came back was kept", h.Runs[0].Recorded),
			"compare them with the stores by: " + undoCommand(by) + " --dry-run",
		}
	}
	return []string{
		fmt.Sprintf("runs with a journal in %s: %d; RECORDED counts what a run was about to release", journalsOf(h), len(h.Runs)),
		"list the addresses of the latest by: " + commandOn("history", by),
	}
}
