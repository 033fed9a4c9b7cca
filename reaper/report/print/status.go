package print

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A statusReport is a report in one screen. Its JSON form is a contract that users script against.
type statusReport struct {
	APIVersion string                 `json:"apiVersion"`
	Kind       string                 `json:"kind"`
	Run        report.RunInfo         `json:"run"`
	Leaked     *report.Leaked         `json:"leaked"`
	Backends   []report.BackendReport `json:"backends"`
	Scarce     []report.Scarce        `json:"scarce"`
	Nodes      []report.AilingNode    `json:"nodes"`
	Findings   []report.Finding       `json:"findings"`
	report.CronJobs
	Next     *judge.Remedy `json:"next"` // null if there is nothing to do
	Warnings []string      `json:"warnings,omitempty"`
}

// shownRows is how many networks and nodes a status shows.
const shownRows = 5

// WriteStatus prints a report in one screen. The format must be one of LookFormats. Options.Run must have the words of a
// run on the same cluster, and Options.Asking the pods that may wait.
func WriteStatus(w io.Writer, o Options, r report.Report, s report.CronJobs) error {
	return o.write(w, viewOfStatus(r, o, s))
}

func viewOfStatus(r report.Report, o Options, s report.CronJobs) view {
	asking := slices.DeleteFunc(o.Asking, func(a report.Asking) bool { return !a.Waits })
	p := statusReport{
		APIVersion: r.APIVersion, Kind: "Status", Run: r.Run, Leaked: r.Leaked, Backends: r.Backends,
		Scarce: r.Scarce(asking, o.Run), Nodes: r.AilingNodes(), Findings: r.Findings, CronJobs: s, Warnings: r.Warnings,
	}
	v := view{
		now:     r.Run.FinishedAt,
		head:    []notice{{text: r.BottomLine()}},
		caveats: r.Run.Caveats,
	}
	if found := foundIn(r.Findings); found != "" {
		v.head = append(v.head, notice{text: "findings: " + found})
	}
	for _, line := range scheduleLines(s, r.Run.StateNamespace) {
		v.head = append(v.head, notice{text: line})
	}
	v.next = nextStep(r, o.Run, asking)
	if len(v.next) > 0 {
		p.Next = &v.next[0]
	}
	v.value = p
	v.tables = func(bool) []table { return []table{scarceTable(p, len(asking) > 0), nodeTable(r, p)} }
	if n := len(r.Warnings); n > 0 {
		v.conclusion = []string{printable.Counted(n, "warning") + ": pools shows each"}
	}
	return v
}

// scarceTable returns a row for each network with few free addresses, or for which pods wait.
func scarceTable(p statusReport, waits bool) table {
	t := table{heading: []string{"NETWORK", "FREE", "OF", "FULL IN", "DUE", "WAITING", "HELD", "WAITING PODS"}, spare: []string{"OF"}}
	for _, n := range p.Scarce[:min(len(p.Scarce), shownRows)] {
		name, free := n.Name, number(n.Free)
		if len(n.Part) > 0 {
			name += " for " + printable.Some(n.Attachments)
		}
		if n.NoBlock != nil && n.Free != nil && n.Free.Sign() > 0 {
			free += ", no block"
		}
		row := []string{name, free, number(n.Capacity), fullIn(n.Forecast, p.Run.StartedAt)}
		for _, status := range []report.Fate{report.Due, report.Waiting, report.Held} {
			row = append(row, countOf(p.Leaked, n.Leaks, status))
		}
		t.rows = append(t.rows, append(row, printable.Some(n.WaitingPods)))
	}
	if more := len(p.Scarce) - shownRows; more > 0 {
		t.say("… and %s: pools shows each", printable.Counted(more, "more network"))
	}
	if len(p.Scarce) == 0 {
		text := "no network is known to run dry"
		if !waits {
			text += ", and no pod is known to wait for an address"
		}
		t.say("%s", text)
	}
	return t
}

// fullIn says when a network is full, and by which rate; nothing if that is not known.
func fullIn(f *report.Forecast, now time.Time) string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("about %s, as in the last %s", duration.HumanDuration(f.Full.Sub(now)), duration.HumanDuration(now.Sub(f.Since)))
}

// countOf counts leaked addresses of one status, with the reason of most if they are held. Without figures of all, it is
// unknown.
func countOf(all *report.Leaked, leaks []report.Leak, status report.Fate) string {
	if all == nil {
		return unknown
	}
	count, most := 0, report.Leak{}
	for _, l := range leaks {
		if l.Status != status {
			continue
		}
		count += l.Count
		if l.Count > most.Count {
			most = l
		}
	}
	if status == report.Held && count > 0 {
		return fmt.Sprintf("%s (%s)", printable.Thousands(count), most.Reason.Words())
	}
	return printable.Thousands(count)
}

// nodeTable returns a row for each node that is not ready, or is gone.
func nodeTable(r report.Report, p statusReport) table {
	t := table{heading: []string{"NODE", "LEAKED", "HELD", "IN USE", "STATE"}}
	for _, n := range p.Nodes[:min(len(p.Nodes), shownRows)] {
		t.rows = append(t.rows, []string{n.Name, printable.Thousands(n.Leaked), printable.Thousands(n.Held), printable.Thousands(n.Live), strings.TrimPrefix(n.State, "is ")})
	}
	if more := len(p.Nodes) - shownRows; more > 0 {
		t.say("… and %s: pools --top nodes shows those that leak", printable.Counted(more, "more node"))
	}
	if r.Living == nil || !r.Living.HasNodes() {
		t.say("whether nodes are ready is unknown")
	}
	return t
}

// scheduleLines say what the CronJobs of a namespace are, and when their runs were.
func scheduleLines(s report.CronJobs, namespace string) (lines []string) {
	switch {
	case s.Unknown != "":
		return []string{"CronJob unknown: " + s.Unknown}
	case len(s.Schedules) == 0:
		return []string{"there is no CronJob in namespace " + namespace}
	}
	for _, one := range s.Schedules {
		line := fmt.Sprintf("CronJob %s (%s)", one.Name, one.Cron)
		if one.Suspended {
			line += " is SUSPENDED"
		}
		if one.DryRun {
			line += ", only plans"
		}
		if one.LastRun == nil {
			line += ", never ran"
		} else {
			line += ", last run " + clock(one.LastRun)
			if !one.Running && (one.LastSuccess == nil || one.LastSuccess.Before(*one.LastRun)) {
				line += " (DID NOT SUCCEED)"
			}
			line += ", last success " + cmp.Or(clock(one.LastSuccess), "never")
		}
		if one.Next != nil {
			line += ", next run " + clock(one.Next)
		}
		lines = append(lines, line)
	}
	return lines
}

// nextStep returns the one command that helps most: to see what a run would release; else why a pod waits; else what nextOf
// says of what waits and is held. There may be none.
func nextStep(r report.Report, run []string, asking []report.Asking) []judge.Remedy {
	if r.Leaked != nil && r.Leaked.Due > 0 && r.Run.Place() != "" {
		return []judge.Remedy{{Says: "See what a run would release", Command: printable.Typed(append(slices.Clone(run), "--dry-run")...)}}
	}
	if len(asking) > 0 && r.Run.Place() != "" {
		return []judge.Remedy{{Says: "See why a pod waits", Command: explainOn(r.Run, asking[0].Namespace+"/"+asking[0].Pod)}}
	}
	for _, one := range nextOf(r, run) {
		if one.Command != "" {
			return []judge.Remedy{one}
		}
	}
	return nil
}
