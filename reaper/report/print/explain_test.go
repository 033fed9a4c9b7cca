package print

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A node may hold thousands of allocations.
func TestNodeThatHoldsManyIsExplainedInFewLines(t *testing.T) {
	x := report.Explanation{
		Question: report.Question{Node: "n1"}, Leaked: &report.Leaked{}, Others: 3,
		Leaks: []report.Leak{{Status: "due", Reason: judge.PodAbsent, Count: 1}, {Status: "held", Reason: judge.NodeUnreachable, Count: 2500}},
	}
	for i := range 2500 {
		x.Found = append(x.Found, report.Explained{Entry: report.Entry{
			IP: fmt.Sprintf("10.0.%d.%d", i/250, i%250), Verdict: judge.Held, Reason: judge.NodeUnreachable, Leaked: true,
			Evidence: []judge.Evidence{{Source: "node n0", Says: "it is not ready"}, {Source: "node n1", Says: "it is not ready since noon"}},
		}})
	}
	x.Found[2499].Verdict, x.Found[2499].Reason = judge.Orphaned, judge.PodAbsent
	var text strings.Builder
	if err := WriteExplanation(&text, "table", x); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  it is not ready since noon, and holds 2,499 allocations, of which 2,499 may be on another node\n",
		"  due         1, PodAbsent\n  held        2,500, NodeUnreachable\n",
		"\nIP          REASON\n10.0.9.249  PodAbsent\n10.0.0.0    NodeUnreachable\n",
		"\n… and 2,495 more leaked allocations: -o json has each\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing:\n%s", want, text.String())
		}
	}
	if lines := strings.Count(text.String(), "\n"); lines > 20 {
		t.Errorf("%d lines:\n%s", lines, text.String())
	}
}
