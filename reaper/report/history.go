package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// maxPools is the largest number of pools of one backend that a row of a history names.
const maxPools = 3

// HistoryFormats returns the names of the formats of a history, sorted.
func HistoryFormats() []string {
	return slices.DeleteFunc(Formats(), func(name string) bool { return name == "html" })
}

// WriteHistory prints a history. It returns an error if Check does not accept the format. by
// says how the program was called. The names of a history are the IDs of its runs, or the
// addresses if one run was asked for.
func WriteHistory(w io.Writer, o Options, h reaper.History, by reaper.RunInfo) error {
	f, err := formatOf(o.Format)
	if err != nil {
		return err
	}
	return o.write(w, f, reportView{
		value:      h,
		tables:     func(wide bool) []table { return historyTables(h, wide || o.All) },
		warnings:   h.Warnings,
		conclusion: historyConclusion(h, by),
		names:      func() []string { return namesOfHistory(h) },
	})
}

func namesOfHistory(h reaper.History) []string {
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
func historyTables(h reaper.History, wide bool) []table {
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
func poolsOf(r reaper.PastRun, all bool) string {
	byBackend := make(map[string][]reaper.PoolRecord)
	var backends []string
	for _, p := range r.Pools {
		if byBackend[p.Backend] == nil {
			backends = append(backends, p.Backend)
		}
		byBackend[p.Backend] = append(byBackend[p.Backend], p)
	}
	var names []string
	for _, backend := range backends {
		pools := byBackend[backend]
		if n := len(pools); !all && n > maxPools {
			sum := 0
			for _, p := range pools {
				sum += p.Recorded
			}
			names = append(names, fmt.Sprintf("%s: %d in %d pools, most in %s: %d", backend, sum, n, pools[0].Pool, pools[0].Recorded))
			continue
		}
		for _, p := range pools {
			names = append(names, fmt.Sprintf("%s %s: %d", backend, p.Pool, p.Recorded))
		}
	}
	return strings.Join(names, "; ")
}

// journalsOf says where the journals of a history are.
func journalsOf(h reaper.History) string {
	if h.Node != "" {
		return h.StateDir + " of node " + h.Node
	}
	return "namespace " + h.StateNamespace
}

// historyConclusion returns how many runs there are, what the figures mean, and a command
// that tells more.
func historyConclusion(h reaper.History, by reaper.RunInfo) []string {
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
