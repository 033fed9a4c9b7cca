package policy_test

import (
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
)

// A policy of MaxSize has room for some 60,000 mistakes. Twice as many take about twice as
// many steps, which allocations count: each step makes the text of a path.
func TestStepsGrowWithMistakesAndNotWithTheirSquare(t *testing.T) {
	for _, tt := range []struct{ name, rule string }{
		{"rules of a wrong type", "- 1\n"},
		{"rules with an unknown field", "- {a: 1}\n"},
		{"rules without a match", "- {}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			steps := func(mistakes int) float64 {
				text := []byte(header + "rules:\n" + strings.Repeat(tt.rule, mistakes))
				return testing.AllocsPerRun(1, func() {
					if _, err := policy.Load(text, known); err == nil {
						t.Fatal("the policy loads")
					}
				})
			}
			if once, twice := steps(400), steps(800); twice > 2.5*once {
				t.Errorf("400 mistakes take %.0f allocations, and 800 take %.0f", once, twice)
			}
		})
	}
}
