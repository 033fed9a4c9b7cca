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
	notPods
)

// urgencyOf returns the urgency of an entry.
func urgencyOf(e *report.Entry) urgency {
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
	case e.Reason == judge.NotPodOwned:
		return notPods
	default:
		return held
	}
}

// words has the word of each urgency in a fold.
var words = [...]string{"failed", "released", "changed", "being deleted", "due", "waiting", "held", "in use", "not a pod's"}

// entryTable returns one row for each address or, with all, for each allocation, the most urgent
// first. Without all, it folds what many rows have in common.
func entryTable(r report.Report, wide, all bool) table {
	t := table{
		heading: []string{"IP", "BACKEND", "POOL", "POD", "VERDICT", "REASON", "OUTCOME", "NOTE"},
		spare:   []string{"BACKEND", "POOL", "OUTCOME", "NOTE", "POD"},
	}
	if !r.Run.DryRun {
		t.spare = []string{"BACKEND", "POOL", "NOTE", "POD"}
	}
	if wide {
		t.heading = append(t.heading, "NODE", "INTERFACE", "SANDBOX", "FIRST SEEN", "DUE", "EVIDENCE")
	}
	for _, group := range groupsOf(rowsOf(r.Entries, all)) {
		shown := len(group)
		if !all {
			shown = shownOf(group)
		}
		for _, row := range group[:shown] {
			t.rows = append(t.rows, row.cells(wide, r.Run.Memory))
		}
		if rest := group[shown:]; len(rest) > 0 {
			t.fold("%s", foldText(rest, shown))
		}
	}
	return t
}

// A row is one address: the allocation that decides on it, and the others that hold it, such as an
// overlapping-range reservation.
type row struct {
	*report.Entry
	at     int // its index in the report
	others []row
}

// firmness orders what entries of one address are by how firmly they keep it. A failure comes first,
// since a person should look at it.
var firmness = [...]int{failed: 0, changed: 1, notPods: 2, held: 3, waiting: 4, due: 5, deleting: 6, released: 7, inUse: 8}

// rowsOf returns the rows of entries or, with each, one row for each entry. What is in use has nothing
// to do with what an earlier round released.
func rowsOf(entries []report.Entry, each bool) []row {
	type address struct {
		ip, network string
		inUse       bool
	}
	rows, indexOf := make([]row, 0, len(entries)), make(map[address]int)
	for at := range entries {
		e := &entries[at]
		one, key := row{Entry: e, at: at}, address{e.IP, e.Network, urgencyOf(e) == inUse}
		i, ok := indexOf[key]
		if each || e.IP == "" || !ok {
			indexOf[key], rows = len(rows), append(rows, one)
			continue
		}
		first := rows[i]
		x, y := firmness[urgencyOf(e)], firmness[urgencyOf(first.Entry)]
		if x < y || x == y && first.Reason == judge.SiblingKept {
			one.others, first.others = first.others, nil
			first, one = one, first
		}
		first.others = append(first.others, one)
		rows[i] = first
	}
	return rows
}

// byAddress leaves one row of those that say the same of one address, as of the entry of a pool and its
// reservation. The first three columns are IP, BACKEND and POOL. What one backend has twice is in two networks.
func byAddress(rows [][]string) (merged [][]string) {
	indexOf := make(map[string]int)
	for _, row := range rows {
		says := strings.Join(append(row[:1:1], row[3:]...), "\x00")
		i, ok := indexOf[says]
		if ok && !slices.Contains(strings.Split(merged[i][1], ", "), row[1]) {
			merged[i][1] += ", " + row[1]
			continue
		}
		indexOf[says] = len(merged)
		merged = append(merged, row)
	}
	return merged
}

// byUrgency sorts rows: by urgency and reason, those that wait by the end of their grace
// period, then by address.
func byUrgency(rows []row) {
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(
			cmp.Compare(urgencyOf(a.Entry), urgencyOf(b.Entry)),
			cmp.Compare(a.Reason, b.Reason),
			compareDue(a.Entry, b.Entry),
			compareIPs(a.IP, b.IP),
			cmp.Compare(a.Backend, b.Backend), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Key, b.Key),
		)
	})
}

// compareDue orders two entries that wait by the ends of their grace periods.
func compareDue(a, b *report.Entry) int {
	if urgencyOf(a) != waiting || a.Due == nil || b.Due == nil {
		return 0
	}
	return a.Due.Compare(*b.Due)
}

// cells returns the cells of a row. Without memory, the times of the entry end with the run, so the
// row has none.
func (e row) cells(wide, memory bool) []string {
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
	for _, other := range e.others {
		if also := e.differs(*other.Entry); also != "" {
			note = joined(note, "also "+also)
		}
	}
	cells := []string{
		nameOf(e.IP, e.Key), e.backends(), e.Pool, podOf(e.Owner),
		e.Verdict.String(), string(e.Reason), string(e.Outcome), note,
	}
	if wide {
		cells = append(cells, e.Owner.Node, e.Owner.Interface, e.Owner.Sandbox, clock(firstSeen), clock(dueAt), evidenceOf(*e.Entry))
	}
	return cells
}

// backends names the stores that hold the address.
func (e row) backends() string {
	names := e.Backend
	for _, other := range e.others {
		if other.Backend != e.Backend {
			names += ", " + other.Backend
		}
	}
	return names
}

// differs says what another allocation of the address is, if the row does not say it.
func (e row) differs(other report.Entry) string {
	says := func(e report.Entry, reason judge.Reason) string {
		return strings.Trim(strings.Join([]string{podOf(e.Owner), e.Verdict.String(), string(reason), string(e.Outcome), e.Error}, " "), " ")
	}
	text := says(other, other.Reason)
	if text == says(*e.Entry, e.Reason) || other.Reason == judge.SiblingKept && says(other, e.Reason) == says(*e.Entry, e.Reason) {
		return ""
	}
	return other.Backend + " " + text
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

// groupsOf sorts the rows, and returns those of one urgency and reason together.
func groupsOf(rows []row) [][]row {
	byUrgency(rows)
	var groups [][]row
	begin := 0
	for i, e := range rows {
		if last := i + 1; last == len(rows) || urgencyOf(e.Entry) != urgencyOf(rows[last].Entry) || e.Reason != rows[last].Reason {
			groups, begin = append(groups, rows[begin:last]), last
		}
	}
	return groups
}

// shownOf returns how many rows of a group are shown. A fold of one would be no
// shorter than its row.
func shownOf(group []row) int {
	limit := shownKept
	switch {
	case group[0].Reason == judge.OutOfScope && len(group) > shownKept, group[0].Reason == judge.NotPodOwned:
		limit = 0
	case urgencyOf(group[0].Entry) <= due:
		limit = shownActions
	}
	if len(group) <= limit+1 {
		return len(group)
	}
	return limit
}

// foldText names what is folded: how many, their reason, and the nodes with the most of them.
func foldText(rest []row, shown int) string {
	more := " more "
	if shown == 0 {
		more = " "
	}
	text := fmt.Sprintf("and %s%s%s: %s", printable.Thousands(len(rest)), more, words[urgencyOf(rest[0].Entry)], rest[0].Reason)
	where, _ := commonest(rest, "on", "other node", func(e row) string { return e.Owner.Node })
	if rest[0].Reason == judge.NotPodOwned {
		where, _ = commonest(rest, "for", "other", func(e row) string { return e.Note })
	}
	if where != "" {
		text += " (" + where + ")"
	}
	return text
}

// named is how many nodes a fold names.
const named = 3

// commonest returns the nodes of rows, or what else they are on or for, and their numbers: some by their
// names, the most frequent one first, and the others together. It returns nothing if no row has one.
func commonest(rows []row, on, other string, of func(row) string) (text string, names []string) {
	counts := make(map[string]int)
	for _, e := range rows {
		counts[of(e)]++
	}
	unknown := counts[""]
	delete(counts, "")
	names = slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	rest := len(rows) - unknown
	var parts []string
	for _, name := range names[:min(named, len(names))] {
		rest -= counts[name]
		parts = append(parts, printable.Thousands(counts[name])+" "+on+" "+middle(printable.Line(name), maxName))
	}
	if rest > 0 {
		parts = append(parts, printable.Thousands(rest)+" "+on+" "+printable.Counted(len(names)-named, other))
	}
	if unknown > 0 && len(parts) > 0 {
		parts = append(parts, printable.Thousands(unknown)+" without a node")
	}
	return strings.Join(parts, ", "), names
}
