package print

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// viewOfHistory returns the view of a history.
func viewOfHistory(h report.History, by report.RunInfo, all bool) view {
	var head []notice
	if h.Node == "" && !isOne(h) {
		for _, line := range scheduleLines(h.CronJobs, h.StateNamespace) {
			head = append(head, notice{text: line})
		}
	}
	return view{
		value:      h,
		now:        by.FinishedAt,
		head:       append(head, notice{text: historyHead(h)}),
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
	if isOne(h) {
		return addresses(ips)
	}
	return runs
}

// isOne reports whether a single run was asked for.
func isOne(h report.History) bool { return len(h.Runs) > 0 && h.Runs[0].Entries != nil }

// historyTables returns a table of the runs. If a single run was asked for, it adds a
// table of its allocations.
func historyTables(h report.History, wide bool) []table {
	runs := table{heading: []string{"RUN", "STARTED", "BY", "VERSION", "EXIT", "DUE", "RELEASED", "RECORDED", "NOTE", "POOLS"}, spare: []string{"POOLS", "VERSION", "RECORDED", "STARTED"}}
	entries := table{heading: []string{"IP", "BACKEND", "POOL", "POD"}, spare: []string{"BACKEND"}}
	if wide {
		entries.heading = append(entries.heading, "NODE", "INTERFACE", "SANDBOX")
	}
	for _, r := range h.Runs {
		exit, due, released, note := resultOf(r)
		recorded := ""
		if r.Addresses > 0 {
			recorded = strconv.Itoa(r.Addresses)
		}
		runs.rows = append(runs.rows, []string{
			r.ID, clock(&r.StartedAt), r.By, r.Version, exit, due, released, recorded, note, poolsOf(r, wide),
		})
		for _, e := range r.Entries {
			row := []string{nameOf(e.IP, e.Key), e.Backend, e.Pool, podOf(e.Owner)}
			if wide {
				row = append(row, e.Owner.Node, e.Owner.Interface, e.Owner.Sandbox)
			}
			entries.rows = append(entries.rows, row)
		}
	}
	if !wide {
		entries.rows = byAddress(entries.rows)
	}
	if !isOne(h) && slices.ContainsFunc(h.Runs, func(r journal.PastRun) bool { return r.Addresses > 0 }) {
		runs.say("RECORDED counts the addresses that a run was about to release")
	}
	return []table{runs, entries}
}

// resultOf returns the cells that say how a run ended; nothing if that is not known.
func resultOf(run journal.PastRun) (exit, due, released, note string) {
	r := run.Result
	if r == nil {
		return "", "", "", ""
	}
	var notes []string
	exit, due, released = "-", strconv.Itoa(r.Due), unknown
	if r.ExitCode != nil && r.Released != nil {
		exit, released = strconv.Itoa(*r.ExitCode), strconv.Itoa(*r.Released)
	} else {
		notes = append(notes, "still running, or killed")
	}
	if r.DryRun {
		released = "dry run"
	}
	if b := r.Restore; b != nil {
		due, released = "", ""
		notes = append(notes, fmt.Sprintf("restore of run %s: %s put back, %d already there, %d taken, %d failed",
			b.Of, printable.Counted(b.Restored, "address"), b.Present, b.Taken, b.Failed))
	}
	for _, b := range run.Restores {
		if b.Restored > 0 {
			notes = append(notes, printable.Counted(b.Restored, "address")+" put back by "+b.ID)
		}
	}
	if r.Selection != "" {
		notes = append(notes, "only "+r.Selection)
	}
	notes = slices.DeleteFunc(slices.Concat([]string{r.Error}, notes, []string{r.Overrides}), func(note string) bool { return note == "" })
	return exit, due, released, strings.Join(notes, "; ")
}

// poolsOf names the pools of a run, those with the most allocations first.
func poolsOf(r journal.PastRun, all bool) string {
	var names []string
	for _, p := range r.Pools {
		if !p.Elsewhere {
			names = append(names, fmt.Sprintf("%s %s: %d", p.Backend, p.Pool, p.Recorded))
		}
	}
	if all {
		return strings.Join(names, ", ")
	}
	return printable.Some(names)
}

// historyHead says how many runs there are, and what the figures mean.
func historyHead(h report.History) string {
	where, asks := "namespace "+h.StateNamespace, ""
	if h.Node != "" {
		where, asks = h.StateDir+" of node "+h.Node, ": is the timer or the DaemonSet running?"
	}
	switch {
	case len(h.Runs) == 0:
		return "no run recorded in " + where + asks
	case isOne(h) && h.Runs[0].Result != nil && h.Runs[0].Result.Restore != nil:
		return "a restore has no journal: what it was to put back is in that of run " + h.Runs[0].Result.Restore.Of
	case isOne(h) && h.Runs[0].Recorded == 0 && h.Runs[0].Result.Released != nil && *h.Runs[0].Result.Released > 0:
		return "the journal of the run is gone from " + where
	case isOne(h) && h.Runs[0].Recorded == 0:
		return "the run released nothing, and has no journal in " + where
	case isOne(h):
		return recordedBy(h.Runs[0])
	}
	by := ""
	if noneByCronJob(h) {
		by = ", none of them by the CronJob"
	}
	return fmt.Sprintf("runs in %s: %d%s", where, len(h.Runs), by)
}

// recordedBy says how many addresses the journal of a run has, and how many of them it released.
func recordedBy(r journal.PastRun) string {
	text := printable.Counted(r.Addresses, "address") + " (" + printable.Counted(r.Recorded, "allocation") + ") recorded before the releases"
	if r.Result == nil || r.Result.Released == nil {
		return text + "; how many of them the run released is unknown"
	}
	released := printable.Thousands(*r.Result.Released)
	switch *r.Result.Released {
	case 0:
		released = "none"
	case r.Addresses:
		released = "all"
	}
	return text + ", of which the run is known to have released " + released
}

// noneByCronJob reports whether people started all runs. A run in a pod may be of the CronJob, or of a Job.
func noneByCronJob(h report.History) bool {
	return h.Node == "" && !slices.ContainsFunc(h.Runs, func(r journal.PastRun) bool { return !strings.HasPrefix(r.By, "user ") })
}

// lookAtRuns returns the command that shows what starts the runs.
func lookAtRuns(by report.RunInfo) string {
	if by.Node != "" {
		return "systemctl list-timers ip-reaper-node.timer"
	}
	flags := append(by.Kubectl(), "-n", by.StateNamespace)
	return "kubectl " + printable.Typed(flags...) + " get cronjobs,jobs -l app.kubernetes.io/name=ip-reaper"
}

// historyConclusion returns the commands that show more.
func historyConclusion(h report.History, by report.RunInfo) (lines []string) {
	if len(h.Runs) == 0 || h.Node == "" && !isOne(h) {
		lines = []string{"look with: " + lookAtRuns(by)}
	}
	last := slices.IndexFunc(h.Runs, func(r journal.PastRun) bool { return r.Recorded > 0 })
	if last < 0 {
		return lines
	}
	id := h.Runs[last].ID
	if isOne(h) {
		return []string{"compare with the stores: " + by.Command("restore", "--run", id, "--dry-run")}
	}
	return append(lines, "list the addresses of the latest run that released: "+by.Command("history", "--run", id))
}
