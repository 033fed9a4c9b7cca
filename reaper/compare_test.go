package reaper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A dry run by a file says how its verdicts differ from those by the installed policy. It reports and
// remembers the same as without the comparison.
func TestDryRunByAFileIsComparedWithTheInstalledPolicy(t *testing.T) {
	hold := func(pods ...string) []policy.Rule {
		return []policy.Rule{{Match: policy.Match{Pods: pods}, Hold: true}}
	}
	const begins = "compared with the installed policy: "
	for _, tt := range []struct {
		name            string
		installed, file func(*policy.Policy)
		selected        judge.Selection
		says            string
		changed         []string // by the addresses' keys
	}{
		{name: "the same", says: begins + "no verdict or reason differs"},
		{name: "the file releases more", installed: func(p *policy.Policy) { p.Rules = hold("gone-*") },
			says: begins + "3 more due, 3 fewer held", changed: []string{"2", "3", "4"}},
		{name: "the file holds one", file: func(p *policy.Policy) { p.Rules = hold("gone-2") },
			says: begins + "1 fewer due, 1 more held", changed: []string{"3"}},
		{name: "one for another", installed: func(p *policy.Policy) { p.Rules = hold("gone-1") }, file: func(p *policy.Policy) { p.Rules = hold("gone-2") },
			says: begins + "as many due and held", changed: []string{"2", "3"}},
		{name: "for another reason", installed: func(p *policy.Policy) { p.Rules = hold("gone-1") }, file: func(p *policy.Policy) { p.Namespaces.Exclude = []string{"*"} },
			says: begins + "2 fewer due, 2 more held", changed: []string{"2", "3", "4"}},
		{name: "a selection", installed: func(p *policy.Policy) { p.Rules = hold("gone-*") }, selected: onePod("gone-2"),
			says: begins + "1 more due, 1 fewer held", changed: []string{"3"}},
		{name: "a longer grace period", file: func(p *policy.Policy) { p.GracePeriod = &policy.Duration{Duration: time.Hour} },
			says: begins + "3 fewer due", changed: []string{"2", "3", "4"}},
		{name: "what only the file's pods decide", installed: func(p *policy.Policy) { p.Protection.StatefulSets = policy.Ignore },
			says: begins + "no verdict or reason differs"},
		{name: "the installed one is over its limit", installed: func(p *policy.Policy) { p.Limits.MaxReleases = new(1) },
			says: begins + "no verdict or reason differs, and the plan of the installed one would be refused (limits.maxReleases)"},
		{name: "it lists other stores", installed: func(p *policy.Policy) { p.Backends = map[string]policy.Backend{"memory": {Enabled: policy.Off}} },
			says: "not compared with the installed policy: they differ in backends, which says what is listed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := memoryHarness(t, "live-1", "gone-1", "gone-2", "gone-3")
			h.policy.DryRun = new(true)
			installed := h.policy
			if tt.installed != nil {
				tt.installed(&installed)
			}
			if tt.file != nil {
				tt.file(&h.policy)
			}
			h.change = func(o *reaper.Options) { o.Selection, o.Remember, o.Brief = tt.selected, true, true }
			plain := h.run(t)
			ledger := h.ledgers.text(t)
			h.change = func(o *reaper.Options) {
				o.Selection, o.Remember, o.Brief = tt.selected, true, true
				o.Installed = func(context.Context) (policy.Policy, error) { return installed, nil }
			}
			rep := h.run(t)
			equal(t, "sentence", rep.Comparison.String(), tt.says)
			var changed []string
			for _, c := range rep.Comparison.Changes {
				changed = append(changed, c.Key)
				if c.Installed == c.File {
					t.Errorf("%s is %v by both", c.Key, c.File)
				}
			}
			equal(t, "changed", changed, tt.changed)
			equal(t, "verdicts", rep.Summary, plain.Summary)
			equal(t, "ledger", h.ledgers.text(t), ledger)
		})
	}
}

func TestComparisonWithoutAnInstalledPolicy(t *testing.T) {
	h, _ := memoryHarness(t, "live-1", "gone-1")
	h.policy.DryRun = new(true)
	h.change = func(o *reaper.Options) {
		o.Installed = func(context.Context) (policy.Policy, error) {
			return policy.Policy{}, errors.New("namespace x has no ConfigMap")
		}
	}
	rep := h.run(t)
	equal(t, "sentence", rep.Comparison.String(), "not compared with the installed policy: namespace x has no ConfigMap")
	equal(t, "outcomes", outcomes(rep), map[string]report.Fate{"1": report.Kept, "2": report.Planned})
}
