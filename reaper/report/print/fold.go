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

// The most rows of one urgency and reason that are shown. What the run did or would do gets
// more rows than what it keeps.
const (
	shownActions = 50
	shownKept    = 10
	shownPools   = 20
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

// findings returns how many addresses of a pool a person should know about.
func findings(p report.PoolReport) int {
	n := p.Leaked + p.Protected + max(p.AllocatedBefore-p.AllocatedAfter, 0)
	if n == 0 && p.ProtectedBy != "" {
		n = 1
	}
	return n
}

// foldPools splits sorted pools into those that are shown and the rest, which is never just one.
func foldPools(pools []report.PoolReport) (shown, rest []report.PoolReport) {
	n := slices.IndexFunc(pools, func(p report.PoolReport) bool { return findings(p) == 0 })
	if n < 0 || n > shownPools {
		n = min(len(pools), shownPools)
	}
	if len(pools) <= n+1 { // a fold of one would be no shorter
		return pools, nil
	}
	return pools[:n], pools[n:]
}
