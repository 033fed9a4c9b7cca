package print

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// An urgency is how soon a person should look at an entry. It is the order of the rows.
type urgency int

const (
	failed urgency = iota
	released
	changed
	deleting
	due
	waiting
	held
	inUse
)

// urgencyOf returns the urgency of an entry.
func urgencyOf(e report.Entry) urgency {
	switch {
	case e.Outcome == report.Failed:
		return failed
	case e.Outcome == report.Released:
		return released
	case e.Outcome == report.Changed, e.Outcome == report.Returned:
		return changed
	case e.Outcome == report.Deleting:
		return deleting
	case e.Verdict == judge.Orphaned:
		return due
	case e.Verdict == judge.Suspected:
		return waiting
	case e.Verdict == judge.InUse:
		return inUse
	default:
		return held
	}
}

// words has the word of each urgency in a fold.
var words = [...]string{"failed", "released", "changed", "being deleted", "due", "waiting", "held", "in use"}

// entryTable returns one row for each entry, the most urgent first. Without all, it folds
// what many entries have in common.
func entryTable(r report.Report, wide, all bool) table {
	t := table{heading: []string{"IP", "BACKEND", "POOL", "POD", "VERDICT", "REASON", "OUTCOME", "NOTE"}}
	if wide {
		t.heading = append(t.heading, "NODE", "INTERFACE", "SANDBOX", "FIRST SEEN", "DUE", "EVIDENCE")
	}
	for _, group := range groupsOf(r.Entries) {
		shown := len(group)
		if !all {
			shown = shownOf(group)
		}
		for _, e := range group[:shown] {
			t.rows = append(t.rows, entryRow(e, wide, r.Run.Memory))
		}
		if rest := group[shown:]; len(rest) > 0 {
			t.fold("%s", foldText(rest, shown))
		}
	}
	return t
}

// byUrgency returns the entries in the order of the rows: by urgency and reason, those
// that wait by the end of their grace period, then by address.
func byUrgency(entries []report.Entry) []report.Entry {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b report.Entry) int {
		return cmp.Or(
			cmp.Compare(urgencyOf(a), urgencyOf(b)),
			cmp.Compare(a.Reason, b.Reason),
			compareDue(a, b),
			compareIPs(a.IP, b.IP),
			cmp.Compare(a.Backend, b.Backend), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Key, b.Key),
		)
	})
	return sorted
}

// compareDue orders two entries that wait by the ends of their grace periods.
func compareDue(a, b report.Entry) int {
	if urgencyOf(a) != waiting || a.Due == nil || b.Due == nil {
		return 0
	}
	return a.Due.Compare(*b.Due)
}

// entryRow returns the row of an entry. Without memory, the times of the entry end with
// the run, so the row has none.
func entryRow(e report.Entry, wide, memory bool) []string {
	firstSeen, dueAt := e.FirstSeen, e.Due
	if !memory {
		firstSeen, dueAt = nil, nil
	}
	note := e.Note
	switch {
	case e.Error != "":
		note = e.Error
	case !wide && e.Verdict == judge.Suspected && dueAt != nil:
		note = strings.TrimLeft(note+", due "+clock(dueAt), ", ")
	}
	row := []string{
		nameOf(e.IP, e.Key), e.Backend, e.Pool, podOf(e.Owner),
		e.Verdict.String(), string(e.Reason), string(e.Outcome), note,
	}
	if wide {
		row = append(row, e.Owner.Node, e.Owner.Interface, e.Owner.Sandbox, clock(firstSeen), clock(dueAt), evidenceOf(e))
	}
	return row
}

// evidenceOf returns the evidence of an entry in one line.
func evidenceOf(e report.Entry) string {
	said := make([]string, len(e.Evidence))
	for i, one := range e.Evidence {
		said[i] = one.Source + ": " + one.Says
	}
	return strings.Join(said, "; ")
}

// The most rows of one urgency and reason that are shown. What the run did or would do gets
// more rows than what it keeps.
const (
	shownActions = 50
	shownKept    = 10
)

// groupsOf returns the entries in the order of the rows, those of one urgency and reason
// together.
func groupsOf(entries []report.Entry) [][]report.Entry {
	var groups [][]report.Entry
	sorted, begin := byUrgency(entries), 0
	for i, e := range sorted {
		if last := i + 1; last == len(sorted) || urgencyOf(e) != urgencyOf(sorted[last]) || e.Reason != sorted[last].Reason {
			groups, begin = append(groups, sorted[begin:last]), last
		}
	}
	return groups
}

// shownOf returns how many entries of a group are shown. A fold of one would be no
// shorter than its row.
func shownOf(group []report.Entry) int {
	limit := shownKept
	switch {
	case group[0].Reason == judge.OutOfScope && len(group) > shownKept:
		limit = 0
	case urgencyOf(group[0]) <= due:
		limit = shownActions
	}
	if len(group) <= limit+1 {
		return len(group)
	}
	return limit
}

// foldText names what is folded: how many, their reason, and the nodes with the most of them.
func foldText(rest []report.Entry, shown int) string {
	more := " more "
	if shown == 0 {
		more = " "
	}
	text := fmt.Sprintf("and %s%s%s: %s", printable.Thousands(len(rest)), more, words[urgencyOf(rest[0])], rest[0].Reason)
	if where := nodesOf(rest); where != "" {
		text += " (" + where + ")"
	}
	return text
}

// namedNodes is how many nodes a fold names.
const namedNodes = 3

// nodesOf returns the nodes of entries and their numbers: some by their names, the most
// frequent one first, and the others together. It returns nothing if no entry has a node.
func nodesOf(entries []report.Entry) string {
	counts := make(map[string]int)
	for _, e := range entries {
		counts[e.Owner.Node]++
	}
	unknown := counts[""]
	delete(counts, "")
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	rest := len(entries) - unknown
	var parts []string
	for _, name := range names[:min(namedNodes, len(names))] {
		rest -= counts[name]
		parts = append(parts, printable.Thousands(counts[name])+" on "+middle(printable.Line(name), maxName))
	}
	if rest > 0 {
		parts = append(parts, printable.Thousands(rest)+" on "+printable.Counted(len(names)-namedNodes, "other node"))
	}
	if unknown > 0 && len(parts) > 0 {
		parts = append(parts, printable.Thousands(unknown)+" without a node")
	}
	return strings.Join(parts, ", ")
}
