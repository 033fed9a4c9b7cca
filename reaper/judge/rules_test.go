package judge_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

var update = flag.Bool("update", false, "write the generated part of docs/verdicts.md anew")

const (
	verdictsPage = "../../docs/verdicts.md"
	tableBegins  = "<!-- The tables are made from reaper/judge/rules*.go: go test ./reaper/judge -run TestVerdictsPage -update -->\n"
	tableEnds    = "<!-- The end of the tables. -->\n"
)

// rulesTables returns the tables of the page. What a rule says is there once.
func rulesTables() string {
	var text strings.Builder
	number, first := 0, map[string]int{}
	write := func(rules []judge.Rule) {
		text.WriteString("| | reason | verdict | when |\n|--:|---|---|---|\n")
		for _, r := range rules {
			number++
			when := r.Doc
			if same, ok := first[r.Doc]; ok {
				when = fmt.Sprintf("As rule %d.", same)
			} else {
				first[r.Doc] = number
			}
			fmt.Fprintf(&text, "| %d | `%s` | %s | %s |\n", number, r.Reason, verdictsOf(r), when)
		}
	}
	write(judge.Rules())
	text.WriteString("\nFor an allocation [on a node](#on-a-node):\n\n")
	write(judge.NodeRules())
	return text.String()
}

// verdictsOf names the verdicts that a rule gives.
func verdictsOf(r judge.Rule) string {
	switch r.Gives {
	case judge.InUse:
		return "in use"
	case judge.Orphaned:
		return "waiting, then due"
	default:
		return "held"
	}
}

func TestVerdictsPageIsMadeFromTheRules(t *testing.T) {
	page, err := os.ReadFile(verdictsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s has no lines %q and %q", verdictsPage, tableBegins, tableEnds)
	}
	if !strings.Contains(before+after, "`"+string(judge.SiblingKept)+"`") {
		t.Errorf("%s does not explain %s, which no rule gives", verdictsPage, judge.SiblingKept)
	}
	want := before + tableBegins + rulesTables() + tableEnds + after
	if *update {
		if err := os.WriteFile(verdictsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	equal(t, verdictsPage+" (go test ./reaper/judge -run TestVerdictsPage -update)", string(page), want)
}
