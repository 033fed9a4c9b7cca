package print

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A look is how a fate is shown.
type look struct {
	urgency int    // how soon a person should look at it: the order of the rows
	word    string // its state, in a table and in a fold
	letter  byte   // on the page: its script has the states
}

// The urgencies from which on something is shown otherwise.
const (
	urgentDue   = 5 // what the run did, or would do, is before it
	urgentInUse = 9
)

var looks = [...]look{
	report.Failed:    {0, "failed", 'f'},
	report.Unsure:    {0, "failed", 'f'},
	report.Unmended:  {0, "failed", 'f'},
	report.Released:  {1, "released", 'r'},
	report.Changed:   {2, "changed", 'c'},
	report.Returned:  {3, "returned", 'i'},
	report.Deleting:  {4, "deleting", 'd'},
	report.Planned:   {urgentDue, "due", 'd'},
	report.Refused:   {urgentDue, "due", 'd'},
	report.NotBegun:  {urgentDue, "due", 'd'},
	report.Due:       {urgentDue, "due", 'd'},
	report.Waiting:   {6, "waiting", 'w'},
	report.Held:      {7, "held", 'h'},
	report.Protected: {7, "held", 'p'},
	report.Other:     {7, "held", 'o'},
	report.Undecided: {8, "undecided", 'u'},
	report.InUse:     {urgentInUse, "in use", 'i'},
	report.ByName:    {urgentInUse, "in use", 'i'},
	report.NotPods:   {10, "not a pod's", 'n'},

	report.Restored:     {letter: 'R'},
	report.Restorable:   {letter: 'P'},
	report.AlreadyThere: {letter: 'S'},
	report.Taken:        {letter: 'T'},
	report.NotRestored:  {letter: 'f'},
}

// lookOf returns how an entry is shown. What is too young to tell waits, too.
func lookOf(e *report.Entry) look {
	if e.Reason == judge.TooYoung {
		return look{looks[report.Waiting].urgency, looks[report.Waiting].word, 'y'}
	}
	return looks[e.Fate()]
}

// entryTable returns one row for each address or, with all, for each allocation, the most urgent
// first. Without all, it folds what many rows have in common.
func entryTable(r report.Report, wide, all bool) table {
	t := table{
		heading: []string{"IP", "BACKEND", "POOL", "POD", "NODE", "STATE", "REASON", "NOTE"},
		spare:   []string{"BACKEND", "REASON"},
	}
	if wide {
		t.heading = append(t.heading, "INTERFACE", "SANDBOX", "FIRST SEEN", "DUE", "EVIDENCE")
	}
	for _, group := range groupsOf(rowsOf(r.Entries, all)) {
		shown := len(group)
		if !all {
			shown = shownOf(group)
		}
		for _, row := range group[:shown] {
			t.rows = append(t.rows, row.cells(wide, r.Run))
		}
		if rest := group[shown:]; len(rest) > 0 {
			t.fold("%s", foldText(rest, shown))
		}
	}
	if slices.ContainsFunc(rowsOf(r.Entries, false), func(e row) bool { return len(e.others) > 0 }) {
		t.say("an address with several store entries is free once all of them are gone")
	}
	return t
}

// A row is one address: the allocation that decides on it, and the others that hold it, such as an
// overlapping-range reservation.
type row struct {
	*report.Entry
	at      int // its index in the report
	address ipam.Address
	inUse   bool
	others  []row
}

// rowsOf returns the rows of entries or, with each, one row for each entry. What is in use has nothing
// to do with what an earlier round released.
func rowsOf(entries []report.Entry, each bool) (rows []row) {
	all := make([]row, len(entries))
	for at := range entries {
		e := &entries[at]
		all[at] = row{Entry: e, at: at, inUse: lookOf(e).urgency == urgentInUse}
		all[at].address.Network = e.Network
		all[at].address.IP, _ = netip.ParseAddr(e.IP) // not valid if it has none
	}
	if each {
		return all
	}
	for _, e := range all {
		if !e.address.IP.IsValid() {
			rows = append(rows, e)
		}
	}
	for address := range ipam.Addresses(all, func(e row) ipam.Address { return e.address }) {
		for _, inUse := range []bool{true, false} {
			some := slices.DeleteFunc(slices.Clone(address), func(e row) bool { return e.inUse != inUse })
			if len(some) > 0 {
				rows = append(rows, merged(some))
			}
		}
	}
	return rows
}

// merged returns one row for the allocations of an address, for the one that keeps it most firmly.
func merged(address []row) row {
	decides := 0
	for i, e := range address {
		first := address[decides]
		if x, y := e.firmness(), first.firmness(); x > y || x == y && first.Reason == judge.SiblingKept {
			decides = i
		}
	}
	first := address[decides]
	first.others = slices.Delete(address, decides, decides+1)
	return first
}

// firmness says how firmly the allocation keeps its address. A failure comes first, since a person should look
// at it.
func (e row) firmness() int {
	if lookOf(e.Entry).urgency == 0 {
		return len(looks)
	}
	return int(e.Fate())
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
			cmp.Compare(lookOf(a.Entry).urgency, lookOf(b.Entry).urgency),
			cmp.Compare(a.Reason, b.Reason),
			compareDue(a.Entry, b.Entry),
			compareIPs(a.IP, b.IP),
			cmp.Compare(a.Backend, b.Backend), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Key, b.Key),
		)
	})
}

// compareDue orders two entries that wait by the ends of their grace periods.
func compareDue(a, b *report.Entry) int {
	if a.Fate() != report.Waiting || a.Due == nil || b.Due == nil {
		return 0
	}
	return a.Due.Compare(*b.Due)
}

// cells returns the cells of a row; the node only of what the run wrote, or would write, unless it is wide. Without
// memory, the times of the entry end with the run, so the row has none.
func (e row) cells(wide bool, run report.RunInfo) []string {
	firstSeen, dueAt := e.FirstSeen, e.Due
	if !run.Memory {
		firstSeen, dueAt = nil, nil
	}
	note := e.Note
	switch {
	case e.Error != "":
		note = e.Error
	case !wide && e.Verdict == judge.Suspected && dueAt != nil:
		note = joined("due in "+duration.HumanDuration(max(0, dueAt.Sub(run.FinishedAt))), note)
	}
	for _, other := range e.others {
		if also := e.differs(*other.Entry); also != "" {
			note = joined(note, "also "+also)
		}
	}
	node := e.Owner.Node
	if !wide && lookOf(e.Entry).urgency > urgentDue {
		node = ""
	}
	cells := []string{
		nameOf(e.IP, e.Key), e.backends(), e.Pool, podOf(e.Owner), node, lookOf(e.Entry).word, string(e.Reason), note,
	}
	if wide {
		cells = append(cells, e.Owner.Interface, e.Owner.Sandbox, clock(firstSeen), clock(dueAt), evidenceOf(*e.Entry))
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
		return strings.Trim(strings.Join([]string{podOf(e.Owner), lookOf(&e).word, string(reason), e.Error}, " "), " ")
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
		if last := i + 1; last == len(rows) || lookOf(e.Entry).urgency != lookOf(rows[last].Entry).urgency || e.Reason != rows[last].Reason {
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
	case lookOf(group[0].Entry).urgency <= urgentDue:
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
	text := fmt.Sprintf("and %s%s%s: %s", printable.Thousands(len(rest)), more, lookOf(rest[0].Entry).word, rest[0].Reason)
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
		parts = append(parts, printable.Thousands(counts[name])+" "+on+" "+printable.Line(name))
	}
	if rest > 0 {
		parts = append(parts, printable.Thousands(rest)+" "+on+" "+printable.Counted(len(names)-named, other))
	}
	if unknown > 0 && len(parts) > 0 {
		parts = append(parts, printable.Thousands(unknown)+" without a node")
	}
	return strings.Join(parts, ", "), names
}
