package print

import (
	"fmt"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// viewOfExplanation returns the view of an explanation: lines for each allocation.
func viewOfExplanation(x report.Explanation) view {
	v := view{value: x, warnings: x.Warnings}
	line := func(format string, args ...any) { v.head = append(v.head, notice{text: fmt.Sprintf(format, args...)}) }
	line("%s: %s", x.Question, summaryOf(x))
	of := ""
	if only := x.Run.Selection.String(); only != "" {
		of = " of " + only
	}
	for _, s := range x.Stores {
		switch {
		case s.Found == nil:
			line("  %s: unknown, %s: %s", s.Name, s.Status, s.Message)
		case s.Message != "":
			line("  %s: %d found%s, %s: %s", s.Name, *s.Found, of, s.Status, s.Message)
		default:
			line("  %s: %d found%s", s.Name, *s.Found, of)
		}
	}
	if len(x.Found) == 0 && len(x.Pools) > 0 {
		line("the address is in the range of: %s", strings.Join(x.Pools, ", "))
	}
	v.tables = func(bool) (all []table) {
		for _, e := range x.Found {
			all = append(all, explained(e))
		}
		return all
	}
	return v
}

// summaryOf says how many allocations there are, and how many leaked.
func summaryOf(x report.Explanation) string {
	n, only := len(x.Found)+x.Others, x.Run.Selection.String()
	found := printable.Counted(n, "allocation")
	switch {
	case n == 0 && only != "":
		found = "no allocation of " + only + "; there may be others"
	case n == 0:
		found = "in no store that was listed"
	case only != "":
		found += " of " + only
	}
	if x.Leaked == nil {
		return found + ", and it is unknown how many leaked"
	}
	return fmt.Sprintf("%s; %d leaked: %d due, %d waiting, %d held", found, x.Leaked.Total, x.Leaked.Due, x.Leaked.Waiting, x.Leaked.Held)
}

// explained returns the lines of one allocation. It counts the rules that did not match.
func explained(e report.Explained) table {
	var t table
	t.say("%s of %s %s, key %s", nameOf(e.IP, e.Key), e.Backend, e.Pool, e.Key)
	for _, part := range []struct{ name, value string }{
		{"pod", podOf(e.Owner)},
		{"sandbox", e.Owner.Sandbox},
		{"interface", e.Owner.Interface},
		{"node", e.Owner.Node},
		{"verdict", e.Verdict.String() + ", " + string(e.Reason)},
		{"note", e.Note},
		{"first seen", clock(e.FirstSeen)},
		{"due", clock(e.Due)},
		{"outcome", string(e.Outcome)},
		{"error", e.Error},
	} {
		if part.value != "" {
			t.say("  %-10s  %s", part.name, part.value)
		}
	}
	others := 0
	for _, rule := range e.Asked {
		if !rule.Matched {
			others++
			continue
		}
		t.say("  rule %2d     yes  %s: %s", rule.Number, rule.Reason, rule.Doc)
	}
	if others > 0 {
		t.say("  rules       %s did not match: -o json has each", printable.Counted(others, "other rule"))
	}
	if e.ChangedBy != "" {
		t.say("  then        the %s changed the decision", e.ChangedBy)
	}
	for _, one := range e.Evidence {
		t.say("  evidence    %s: %s", one.Source, one.Says)
	}
	for _, remedy := range e.Remedies {
		t.say("  to change   %s", remedy.Says)
		if remedy.Command != "" {
			t.say("              $ %s", remedy.Command)
		}
	}
	return t
}
