package reaper_test

import (
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// planOf returns a plan that releases some of all allocations.
func planOf(t *testing.T, planned, all int) judge.Plan {
	t.Helper()
	decisions := make([]judge.Decision, all)
	for i := range decisions {
		decisions[i] = decided(judge.Held, ipam.Allocation{})
		if i < planned {
			decisions[i].Verdict = judge.Orphaned
		}
	}
	plan := judge.MakePlan(decisions)
	equal(t, "planned", len(plan.Orphans()), planned)
	return plan
}

// messages returns the messages of refusals, in lines.
func messages(refusals []judge.Refusal) string {
	var lines []string
	for _, refusal := range refusals {
		lines = append(lines, refusal.Message)
	}
	return strings.Join(lines, "\n")
}

func TestLimits(t *testing.T) {
	onePod := censusOf(census.Pod{Ref: web})
	for _, tt := range []struct {
		name         string
		planned, all int
		limits       func(*policy.Limits)
		census       census.Census
		want         string // empty if the plan is allowed
	}{
		{"nothing to do in an empty cluster", 0, 100, nil, censusOf(), ""},
		{"a single release in an empty cluster", 1, 1, nil, censusOf(),
			"the cluster has no pods: the plan releases 1 of 1 allocations (allowed: none)"},
		{"a single release in a cluster of one pod", 1, 1, nil, onePod, ""},
		{"no limit of releases", 50, 100, nil, onePod, ""},
		{"as many releases as allowed", 10, 100, maxReleases(10), onePod, ""},
		{"one release too many", 11, 100, maxReleases(10), onePod,
			"limits.maxReleases: the plan releases 11 of 100 allocations (allowed: 10)"},
		{"exactly the fraction", 10, 20, nil, onePod, ""},
		{"more than the fraction", 11, 20, nil, onePod,
			"limits.maxFraction: the plan releases 11 of 20 allocations (allowed: a fraction of 0.5)"},
		{"more than the fraction of too few", 19, 19, nil, onePod, ""},
		{"the fraction counts however few", 1, 1, minEntries(0), onePod,
			"limits.maxFraction: the plan releases 1 of 1 allocations (allowed: a fraction of 0.5)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limits := policy.Default().Limits
			if tt.limits != nil {
				tt.limits(&limits)
			}
			equal(t, "refusals", messages(planOf(t, tt.planned, tt.all).Check(limits, tt.census)), tt.want)
		})
	}
}

func maxReleases(n int) func(*policy.Limits) {
	return func(l *policy.Limits) { l.MaxReleases = &n }
}

func minEntries(n int) func(*policy.Limits) {
	return func(l *policy.Limits) { l.MinEntries = &n }
}

// Promise 1. Limits are fractions of addresses. An allocation without an address counts
// on neither side.
func TestLimitsCountAddressesOnly(t *testing.T) {
	onePod := censusOf(census.Pod{Ref: web})
	decisions := func(orphans, kept, orphanedEmptyHandles, keptEmptyHandles int) judge.Plan {
		var all []judge.Decision
		add := func(n int, verdict judge.Verdict, emptyHandle bool) {
			for range n {
				all = append(all, decided(verdict, ipam.Allocation{EmptyHandle: emptyHandle}))
			}
		}
		add(orphanedEmptyHandles, judge.Orphaned, true)
		add(orphans, judge.Orphaned, false)
		add(keptEmptyHandles, judge.Held, true)
		add(kept, judge.InUse, false)
		return judge.MakePlan(all)
	}
	for _, tt := range []struct {
		name   string
		plan   judge.Plan
		limits func(*policy.Limits)
		census census.Census
		want   string
	}{
		{"many empty handles and as many addresses as allowed", decisions(1, 30, 1000, 0), maxReleases(1), onePod, ""},
		{"many empty handles and one address too many", decisions(2, 30, 1000, 0), maxReleases(1), onePod,
			"limits.maxReleases: the plan releases 2 of 32 allocations (allowed: 1)"},
		{"many empty handles that stay do not make the fraction smaller", decisions(16, 15, 0, 1000), nil, onePod,
			"limits.maxFraction: the plan releases 16 of 31 allocations (allowed: a fraction of 0.5)"},
		{"empty handles do not count for minEntries", decisions(5, 1, 5, 1000), nil, onePod, ""},
		{"empty handles only, in an empty cluster", decisions(0, 0, 1, 0), nil, censusOf(),
			"the cluster has no pods: the plan releases 0 of 0 allocations (allowed: none)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limits := policy.Default().Limits
			if tt.limits != nil {
				tt.limits(&limits)
			}
			equal(t, "refusals", messages(tt.plan.Check(limits, tt.census)), tt.want)
		})
	}
}

// Promise 7. An operator who raises one limit must not meet the next one.
func TestEveryLimitThatRefusesIsInTheReport(t *testing.T) {
	h, m := memoryHarness(t, "gone-1", "gone-2", "gone-3")
	h.policy.Limits = policy.Limits{MaxReleases: new(1), MaxFraction: new(0.1), MinEntries: new(1), MaxPodDrop: new(0.5)}
	h.ledgers.stored = ledgerWithFigures(t, 100, 0).Encode()
	for _, inspects := range []bool{false, true} {
		rep, err := reaper.Run(t.Context(), h.options())
		if inspects {
			rep, err = reaper.Inspect(t.Context(), h.options())
		}
		const plan = "the plan releases 3 of 3 allocations (allowed: "
		raise := func(limit string) string {
			return "review the plan; if it is right, raise " + limit + " or give --unsafe-ignore-limit=" + strings.TrimPrefix(limit, "limits.")
		}
		want := []judge.Refusal{
			{Limit: "the cluster has no pods", Message: "the cluster has no pods: " + plan + "none)",
				Remedy: "check that the API server is the right one; if it is, give --unsafe-ignore-limit=noPods"},
			{Limit: "limits.maxReleases", Message: "limits.maxReleases: " + plan + "1)", Remedy: raise("limits.maxReleases")},
			{Limit: "limits.maxFraction", Message: "limits.maxFraction: " + plan + "a fraction of 0.1)", Remedy: raise("limits.maxFraction")},
		}
		if !inspects { // files have no ledger, and end no run
			want = append([]judge.Refusal{{
				Limit:   "limits.maxPodDrop",
				Message: "limits.maxPodDrop: the cluster has 0 unfinished pods, down from 100 in the last run (allowed: a drop by a fraction of 0.5)",
				Remedy: "check that the API server is the right one and lists everything; if it does, " +
					"run again after a grace period, raise limits.maxPodDrop or give --unsafe-ignore-limit=maxPodDrop",
			}}, want...)
			limit := limitError(t, err)
			equal(t, "refusals of the error", limit.Refusals, want)
			equal(t, "limits in the text of the error", strings.Count(limit.Error(), "(allowed: "), len(want))
		}
		equal(t, "refused", rep.Result.Refused, want)
		for key, outcome := range outcomes(rep) {
			equal(t, "outcome of "+key, outcome, report.Refused)
		}
		if !strings.Contains(rep.BottomLine(), "but refused") {
			t.Errorf("the bottom line reads as approved: %s", rep.BottomLine())
		}
	}
	equal(t, "allocations left", len(contentsOf(t, m)), 3)
}
