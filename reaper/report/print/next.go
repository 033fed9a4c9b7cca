package print

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// nextOf returns what to do after a run, and the commands to type. again repeats the run
// (Options.Run).
func nextOf(r report.Report, again []string) []judge.Remedy {
	next := []judge.Remedy{}
	advise := func(says, command string) {
		next = append(next, judge.Remedy{Says: says, Command: command})
	}
	repeat := func(flags ...string) string { return printable.Typed(printable.Replaced(again, flags...)...) }
	// A run in a cluster is repeated by what started it, not by a person who types. What a limit refuses, it refuses
	// again.
	repeatable := len(again) > 0 && !r.Run.NoState && r.Run.Context+r.Run.Node != "" && !r.Run.Policy.Piped() && len(r.Result.Refused) == 0
	if found := r.Leaked; found != nil {
		// What writes goes by the installed policy, not by a file that differs.
		byFile := r.Comparison != nil && !r.Comparison.NotInstalled
		writable := repeatable && !r.Run.Barred && !r.Run.LedgerUnread && !byFile
		switch wait := r.Run.Forgets; {
		case !writable || r.Run.Denied || found.Due == 0:
		case wait.Duration > 0:
			advise("Release what is due, and what is by then (needs the right to release; it looks twice again, which takes a minute or more)",
				repeat("--wait="+wait.String(), "--dry-run=false"))
		default:
			advise("Release what is due (needs the right to release)", repeat("--dry-run=false"))
		}
		remembers := writable && !r.Run.Unsaved && !overridesKeeping(again)
		if remembers && found.Waiting > 0 && !r.Run.Memory {
			advise("Remember what waits, so that its grace period can end (needs the right to write the ledger)", repeat("--remember", "--dry-run"))
		}
		if repeatable && found.Waiting > 0 && r.Run.Forgets.Duration == 0 && r.Run.Policy.GracePeriod.Duration > time.Minute {
			switch wait, n, due := soonest(r.Entries); {
			case n > 0:
				says := fmt.Sprintf("Look twice, at least a minute apart, in place of the grace period, for %d of %d that wait", n, found.Waiting)
				flags := []string{"--grace-period=60s", fmt.Sprintf("--wait=%.0fm", wait.Minutes()), "--dry-run"}
				if remembers {
					says += " (needs the right to write the ledger)"
					flags = append(flags, "--remember")
				}
				advise(says, repeat(flags...))
			case due != nil:
				advise("Wait until "+judge.Stamp(*due)+", when a run releases the first of what waits", "")
			}
		}
		if len(found.HeldBy) > 0 && r.Run.Place() != "" {
			if i := slices.IndexFunc(r.Entries, func(e report.Entry) bool {
				return e.Address != nil && e.Address.Fate.Status() == report.Held && e.Address.Reason == found.HeldBy[0].Reason
			}); i >= 0 {
				held := r.Entries[i].IP
				advise(fmt.Sprintf("Ask why an address is held, here %s (%s)", held, found.HeldBy[0].Reason.Words()), explainOn(r.Run, held))
			}
		}
		next = append(next, waitsOf(r)...)
	}
	if r.Summary.Released > 0 {
		advise("Undo the releases of this run", undoOn(r.Run))
	}
	return next
}

// overridesKeeping reports whether a run that remembers would not only begin grace periods, but also believe a store or a
// census that others refuse, or forget what a restore holds.
func overridesKeeping(run []string) bool {
	return slices.ContainsFunc(run, func(word string) bool {
		flag, _, _ := strings.Cut(word, "=")
		return slices.Contains([]string{"--accept-new-store", "--unsafe-ignore-limit", "--release-restored"}, flag)
	})
}

// soonest returns how long a run that looks twice has to wait until the first of what waits is due, and how many addresses
// are by then: 0 if that is too long. due is when one is after its grace period; nil if none has begun.
func soonest(entries []report.Entry) (wait time.Duration, n int, due *time.Time) {
	var waits []time.Duration
	for a, allocations := range report.Addresses(entries) {
		if a.Fate != report.Waiting {
			continue
		}
		var longest time.Duration
		late := false
		for _, e := range allocations {
			if e.Due != nil && (due == nil || e.Due.Before(*due)) {
				due = e.Due
			}
			late = late || e.Fate() == report.Waiting && e.Wait == 0
			longest = max(longest, e.Wait)
		}
		if !late {
			waits = append(waits, longest)
		}
	}
	if len(waits) == 0 {
		return 0, 0, due
	}
	slices.Sort(waits)
	n, _ = slices.BinarySearch(waits, waits[0]+1)
	return waits[0], n, due
}

// waitsOf says which unreachable nodes hold addresses, and how to look at the first of them before it is
// fenced. It leaves out addresses that may be on any of several nodes.
func waitsOf(r report.Report) []judge.Remedy {
	var waiting []row
	for _, e := range rowsOf(r.Entries, false) {
		if a := e.Address; a != nil && a.Fate == report.Held && a.Reason == judge.NodeUnreachable && holderOf(e) != "" && !strings.Contains(e.Note, judge.Also) {
			waiting = append(waiting, e)
		}
	}
	where, names := commonest(waiting, "for", "other node", holderOf)
	if len(names) == 0 {
		return nil
	}
	return []judge.Remedy{{
		Says:    "Addresses wait for nodes that are not ready: " + where + ". Make sure that a node is off, then fence it",
		Command: explainOn(r.Run, "node/"+names[0]),
	}}
}

// holderOf returns the node that may have the address of a row; nothing if it may be any of several.
func holderOf(e row) string {
	holder := ""
	for _, one := range e.Evidence {
		node := strings.TrimPrefix(one.Source, "node ")
		if e.HeldBy(node) == "" {
			continue
		}
		if holder != "" { // the others may be many
			return ""
		}
		holder = node
	}
	return holder
}

// explainOn returns a command that explains what is appended to it, where the run was;
// nothing for files.
func explainOn(run report.RunInfo, what ...string) string {
	if run.Place() == "" {
		return ""
	}
	return run.Command("explain", what...)
}

// undoOn returns the command that puts back what a run released.
func undoOn(run report.RunInfo) string {
	return run.Command("restore", "--run", run.ID, "--dry-run=false")
}
