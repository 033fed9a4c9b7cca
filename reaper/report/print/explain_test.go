package print

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A node may hold thousands of allocations whose own node nobody knows. Its own are all explained.
func TestNodeThatHoldsManyIsExplainedInFewLines(t *testing.T) {
	x := report.Explanation{Question: report.Question{Node: "n1"}, Leaked: &report.Leaked{}}
	for i := range 25 {
		e := report.Entry{
			IP: fmt.Sprintf("10.0.0.%d", i), Verdict: judge.Held, Reason: judge.NodeUnreachable, Leaked: true,
			Evidence: []judge.Evidence{{Source: "node n0", Says: "it is not ready"}, {Source: "node n1", Says: "it is not ready since noon"}},
		}
		if i >= 20 {
			e.Owner = ipam.EntryOwner{Node: "n1"}
		}
		x.Found = append(x.Found, report.Explained{Entry: e})
	}
	var text strings.Builder
	if err := WriteExplanation(&text, "table", x); err != nil {
		t.Fatal(err)
	}
	for want, times := range map[string]int{
		"  it is not ready since noon, and holds 25 allocations, of which 20 may be on another node\n": 1,
		"  verdict     held, NodeUnreachable\n":                                                        15,
		"\n10.0.0.24 of ":                                                                              1,
		"… and 10 more that may be on another node: -o json has each\n":                                1,
	} {
		if got := strings.Count(text.String(), want); got != times {
			t.Errorf("%q is there %d times, want %d:\n%s", want, got, times, text.String())
		}
	}
}
