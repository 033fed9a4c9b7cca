package print

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Tops returns what WritePools can count leaks by.
func Tops() []string { return []string{"nodes", "namespaces", byAge} }

const byAge = "ages"

// rowOf returns the row in which the address of an entry counts; empty if that is not known.
func rowOf(e report.Entry, by string, now time.Time) string {
	switch by {
	case byAge:
		return ageOf(e, now)
	case "nodes":
		return e.Owner.Node
	default:
		return e.Owner.Namespace
	}
}

// A ranking counts the leaked addresses by something.
type ranking struct {
	By   string      `json:"by"`
	Rows []rankedRow `json:"rows"` // the most leaks first; ages in their order

	// Known is false if the pods could not be listed: then there are no rows.
	Known bool `json:"known"`
}

// A rankedRow counts the leaks of one node, namespace or age. Leaked is the sum of
// the others.
type rankedRow struct {
	Name    string `json:"name"`
	Leaked  int    `json:"leaked"`
	Due     int    `json:"due"`
	Waiting int    `json:"waiting"`
	Held    int    `json:"held"`
	State   string `json:"state,omitempty"` // that the node is not ready, or is gone
}

// nameless is the row of leaks whose node or namespace the store does not name.
const nameless = "(unknown)"

// rank counts the leaks that the stores still have.
func rank(r report.Report, by string) ranking {
	counts := r.LeakedBy(func(e report.Entry) string { return rowOf(e, by, r.Run.StartedAt) })
	found := ranking{By: by, Known: r.Leaked != nil, Rows: []rankedRow{}}
	for name, n := range counts {
		if left := n.Total - n.Released; left > 0 {
			row := rankedRow{cmp.Or(name, nameless), left, n.Due, n.Waiting, n.Held, ""}
			if by == "nodes" {
				row.State = r.NodeState(name)
			}
			found.Rows = append(found.Rows, row)
		}
	}
	slices.SortFunc(found.Rows, func(a, b rankedRow) int {
		if order := cmp.Compare(b.Leaked, a.Leaked); by != byAge && order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return found
}

// ageOf returns how old a leak is, in words whose order is that of the ages: since an earlier run first
// saw it without an owner, or else since it was allocated.
func ageOf(e report.Entry, now time.Time) string {
	var since time.Time
	switch {
	case e.FirstSeen != nil && e.FirstSeen.Before(now):
		since = *e.FirstSeen
	case e.Created != nil:
		since = *e.Created
	default:
		return "unknown" // behind the others
	}
	const day = 24 * time.Hour
	switch age := now.Sub(since); {
	case age < time.Hour:
		return "0 to 1 hour"
	case age < day:
		return "1 hour to 1 day"
	case age < 7*day:
		return "1 to 7 days"
	case age < 30*day:
		return "7 to 30 days"
	default:
		return "over 30 days"
	}
}

// table returns the ranking for people.
func (r ranking) table(limit int) table {
	t := table{heading: []string{strings.ToUpper(strings.TrimSuffix(r.By, "s")), "LEAKED", "DUE", "WAITING", "HELD", "STATE"}}
	switch {
	case !r.Known:
		t.say("unknown: could not tell what is leaked")
		return t
	case len(r.Rows) == 0:
		t.say("nothing is leaked")
		return t
	}
	left := 0
	for i, row := range r.Rows {
		if i >= limit {
			left += row.Leaked
			continue
		}
		t.rows = append(t.rows, []string{row.Name, printable.Thousands(row.Leaked), printable.Thousands(row.Due), printable.Thousands(row.Waiting), printable.Thousands(row.Held), strings.TrimPrefix(row.State, "is ")})
	}
	if more := len(r.Rows) - limit; more > 0 {
		t.say("… and %s more with %s: --limit shows more", printable.Thousands(more), printable.Thousands(left))
	}
	if r.By == byAge {
		t.say("ages count from the run that first saw the leak, or else from the allocation")
	}
	return t
}
