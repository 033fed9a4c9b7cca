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

	// Refused has every limit that refused the plan. If it is not empty, no part of the
	// plan was released, or would be.
	Refused []judge.Refusal `json:"refused,omitempty"`
}

// Leaked counts the addresses that have no owner, each once. Total is the sum of the others.
type Leaked struct {
	Total    int `json:"total"`
	Due      int `json:"due"`      // the grace period is over, and a store still has it
	Released int `json:"released"` // by this run, from every store
	Waiting  int `json:"waiting"`  // the grace period is not over
	Held     int `json:"held"`     // kept for another reason

	// HeldBy has the reasons of Held, the most frequent one first.
	HeldBy []ReasonCount `json:"heldBy"`

	// Allocations counts the allocations without an owner. WithoutAddress counts those that
	// hold no address, such as empty handles; they are in none of the other figures.
	Allocations    int `json:"allocations"`
	WithoutAddress int `json:"withoutAddress"`
}

// A ReasonCount is how many addresses have a reason.
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
	if !listed || r.Blind() {
		return nil
	}
	found := Leaked{HeldBy: []ReasonCount{}}
	for i := range r.Entries {
		if e := &r.Entries[i]; fateOf(e) >= Protected {
			found.Allocations++
			if e.IP == "" {
				found.WithoutAddress++
			}
		}
	}
	addresses, _ := Addresses(r.Entries)
	for _, a := range addresses {
		found.Count(a)
	}
	slices.SortFunc(found.HeldBy, func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return &found
}

// Blind reports whether the run could not list the pods. Then it holds every allocation, and the
// verdicts mean nothing.
func (r Report) Blind() bool {
	return slices.ContainsFunc(r.Entries, func(e Entry) bool { return e.Reason == judge.NoCensus })
}

// Count counts an address that leaked. HeldBy is unsorted then.
func (l *Leaked) Count(a *Address) {
	switch a.Fate {
	case Live, Other:
		return
	case Freed:
		l.Released++
	case Due:
		l.Due++
	case Waiting:
		l.Waiting++
	case Protected, Held:
		l.Held++
		i := slices.IndexFunc(l.HeldBy, func(c ReasonCount) bool { return c.Reason == a.Reason })
		if i < 0 {
			i, l.HeldBy = len(l.HeldBy), append(l.HeldBy, ReasonCount{Reason: a.Reason})
		}
		l.HeldBy[i].Count++
	}
	l.Total++
}

// BottomLine says in one sentence how much is leaked, and what becomes of it. It names the
// stores that could not be listed, because their leaks are not counted.
func (r Report) BottomLine() string {
	if r.Leaked == nil {
		return "leak count unknown: " + r.blindness()
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
	line := printable.Counted(l.Total, "leaked address") + only + ": " + strings.Join(parts, ", ")
	if len(l.HeldBy) > 0 {
		why := make([]string, len(l.HeldBy))
		for i, h := range l.HeldBy {
			why[i] = printable.Thousands(h.Count) + " " + h.Reason.Words()
		}
		line += " (" + strings.Join(why, ", ") + ")"
	}
	if l.WithoutAddress > 0 {
		line += "; and " + printable.Counted(l.WithoutAddress, "leaked allocation") + " without an address"
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
	case r.Blind():
		return "pods unknown"
	case len(failed) > 0:
		return "could not list any store"
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
