package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A Result says how a run ended. The zero Result is a run that did everything.
type Result struct {
	// ExitCode is that of the program. Package cli sets it.
	ExitCode int    `json:"exitCode"`
	Error    string `json:"error,omitempty"`

	// Refused has every limit that refused the plan. If it is not empty, nothing of the
	// plan was released, or would be.
	Refused []judge.Refusal `json:"refused,omitempty"`
}

// Leaked counts the allocations that have no owner. Total is the sum of the others.
type Leaked struct {
	Total    int `json:"total"`
	Due      int `json:"due"`      // the grace period is over, and the store still has them
	Released int `json:"released"` // by this run
	Waiting  int `json:"waiting"`  // the grace period is not over
	Held     int `json:"held"`     // kept for another reason

	// HeldBy has the reasons of Held, the most frequent one first.
	HeldBy []ReasonCount `json:"heldBy"`
}

// A ReasonCount is how many allocations have a reason.
type ReasonCount struct {
	Reason judge.Reason `json:"reason"`
	Count  int          `json:"count"`
}

// leakedOf counts the entries. It returns nil if the pods could not be listed, or if no
// store could.
func leakedOf(r Report) *Leaked {
	listed := slices.ContainsFunc(r.Backends, func(b BackendReport) bool {
		return b.Status == ipam.StatusOK || b.Status == ipam.StatusPartial
	})
	blind := slices.ContainsFunc(r.Entries, func(e Entry) bool { return e.Reason == judge.NoCensus })
	if !listed || blind {
		return nil
	}
	found := Leaked{HeldBy: []ReasonCount{}}
	for _, e := range r.Entries {
		found.Count(e)
	}
	slices.SortFunc(found.HeldBy, func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return &found
}

// Count counts an entry, if it leaked. HeldBy is in no order then.
func (l *Leaked) Count(e Entry) {
	switch {
	case !e.Leaked || e.Outcome == Changed || e.Outcome == Returned:
		return
	case e.Outcome == Released:
		l.Released++
	case e.Verdict == judge.Orphaned:
		l.Due++
	case e.Verdict == judge.Suspected:
		l.Waiting++
	default:
		l.Held++
		i := slices.IndexFunc(l.HeldBy, func(c ReasonCount) bool { return c.Reason == e.Reason })
		if i < 0 {
			i, l.HeldBy = len(l.HeldBy), append(l.HeldBy, ReasonCount{Reason: e.Reason})
		}
		l.HeldBy[i].Count++
	}
	l.Total++
}

// BottomLine says in one sentence how much is leaked, and what becomes of it. It names the
// stores that could not be listed, because their leaks are not counted.
func (r Report) BottomLine() string {
	if r.Leaked == nil {
		return "unknown how much is leaked: " + r.blindness()
	}
	l, only := *r.Leaked, ""
	if !r.Run.Selection.Everything() {
		only = " of " + r.Run.Selection.String()
		if r.Summary.Entries == 0 {
			return "no listed allocation matches " + r.Run.Selection.String() + r.alsoUnknown()
		}
	}
	due, refused := " due now", len(r.Result.Refused) > 0
	var parts []string
	if !r.Run.DryRun || l.Released > 0 {
		parts, due = append(parts, printable.Thousands(l.Released)+" released"), " still due"
	}
	if refused {
		due += " but refused"
	}
	parts = append(parts, printable.Thousands(l.Due)+due, printable.Thousands(l.Waiting)+" waiting", printable.Thousands(l.Held)+" held")
	line := printable.Thousands(l.Total) + " leaked" + only + ": " + strings.Join(parts, ", ")
	if len(l.HeldBy) > 0 {
		why := make([]string, len(l.HeldBy))
		for i, h := range l.HeldBy {
			why[i] = printable.Thousands(h.Count) + " " + h.Reason.Words()
		}
		line += " (" + strings.Join(why, ", ") + ")"
	}
	return line + r.alsoUnknown()
}

// alsoUnknown names the stores that could not be listed, for the end of the bottom line.
func (r Report) alsoUnknown() string {
	if unknown := r.unlisted(); len(unknown) > 0 {
		return "; unknown in " + strings.Join(unknown, ", ")
	}
	return ""
}

// blindness says why it is not known how much is leaked.
func (r Report) blindness() string {
	switch failed := r.unlisted(); {
	case slices.ContainsFunc(r.Entries, func(e Entry) bool { return e.Reason == judge.NoCensus }):
		return "the pods are not known"
	case len(failed) > 0:
		return "no store could be listed"
	default:
		return "no store was listed"
	}
}

// unlisted returns the names of the stores that could not be listed.
func (r Report) unlisted() []string {
	var names []string
	for _, b := range r.Backends {
		if b.Status == ipam.StatusFailed {
			names = append(names, b.Name)
		}
	}
	return names
}
