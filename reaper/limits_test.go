package reaper_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// planOf returns a plan that releases some of all allocations.
func planOf(t *testing.T, planned, all int) reaper.Plan {
	t.Helper()
	decisions := make([]reaper.Decision, all)
	for i := range planned {
		decisions[i].Verdict = reaper.Orphaned
	}
	plan := reaper.MakePlan(decisions)
	equal(t, "planned", len(plan.Orphans()), planned)
	return plan
}

func TestLimits(t *testing.T) {
	onePod := censusOf(reaper.Pod{Ref: web})
	for _, tt := range []struct {
		name         string
		planned, all int
		limits       func(*policy.Limits)
		census       reaper.Census
		want         *reaper.LimitError // nil if the plan is allowed
	}{
		{"nothing to do in an empty cluster", 0, 100, nil, censusOf(), nil},
		{"nothing to do without a census", 0, 100, nil, reaper.Census{}, nil},
		{"a single release in an empty cluster", 1, 1, nil, censusOf(),
			&reaper.LimitError{Limit: "the cluster has no pods", Planned: 1, Allocations: 1, Allowed: "none"}},
		{"a single release in a cluster of one pod", 1, 1, nil, onePod, nil},
		{"no limit of releases", 50, 100, nil, onePod, nil},
		{"as many releases as allowed", 10, 100, maxReleases(10), onePod, nil},
		{"one release too many", 11, 100, maxReleases(10), onePod,
			&reaper.LimitError{Limit: "limits.maxReleases", Planned: 11, Allocations: 100, Allowed: "10"}},
		{"exactly the fraction", 10, 20, nil, onePod, nil},
		{"more than the fraction", 11, 20, nil, onePod,
			&reaper.LimitError{Limit: "limits.maxFraction", Planned: 11, Allocations: 20, Allowed: "a fraction of 0.5"}},
		{"more than the fraction of an odd number", 11, 21, nil, onePod,
			&reaper.LimitError{Limit: "limits.maxFraction", Planned: 11, Allocations: 21, Allowed: "a fraction of 0.5"}},
		{"more than the fraction of too few", 19, 19, nil, onePod, nil},
		{"all, where all are allowed", 40, 40, maxFraction(1), onePod, nil},
		{"a tiny fraction", 1, 1000, maxFraction(0.0001), onePod,
			&reaper.LimitError{Limit: "limits.maxFraction", Planned: 1, Allocations: 1000, Allowed: "a fraction of 0.0001"}},
		{"the fraction counts however few", 1, 1, minEntries(0), onePod,
			&reaper.LimitError{Limit: "limits.maxFraction", Planned: 1, Allocations: 1, Allowed: "a fraction of 0.5"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limits := policy.Default().Limits
			if tt.limits != nil {
				tt.limits(&limits)
			}
			err := planOf(t, tt.planned, tt.all).Check(limits, tt.census)
			var got *reaper.LimitError
			if err != nil && !errors.As(err, &got) {
				t.Fatalf("Check: %v, want a LimitError", err)
			}
			equal(t, "refusal", got, tt.want)
		})
	}
}

func maxReleases(n int) func(*policy.Limits) {
	return func(l *policy.Limits) { l.MaxReleases = &n }
}

func maxFraction(f float64) func(*policy.Limits) {
	return func(l *policy.Limits) { l.MaxFraction = &f }
}

func minEntries(n int) func(*policy.Limits) {
	return func(l *policy.Limits) { l.MinEntries = &n }
}

// Promise 1. Limits are fractions of addresses. An allocation without an address counts
// on neither side.
func TestLimitsCountAddressesOnly(t *testing.T) {
	onePod := censusOf(reaper.Pod{Ref: web})
	decisions := func(orphans, kept, orphanedEmptyHandles, keptEmptyHandles int) reaper.Plan {
		var all []reaper.Decision
		add := func(n int, verdict reaper.Verdict, emptyHandle bool) {
			for range n {
				d := reaper.Decision{Verdict: verdict}
				d.Allocation.EmptyHandle = emptyHandle
				all = append(all, d)
			}
		}
		add(orphanedEmptyHandles, reaper.Orphaned, true)
		add(orphans, reaper.Orphaned, false)
		add(keptEmptyHandles, reaper.Held, true)
		add(kept, reaper.InUse, false)
		return reaper.MakePlan(all)
	}
	for _, tt := range []struct {
		name   string
		plan   reaper.Plan
		limits func(*policy.Limits)
		census reaper.Census
		want   *reaper.LimitError
	}{
		{"many empty handles to release", decisions(0, 30, 1000, 0), maxReleases(1), onePod, nil},
		{"many empty handles and as many addresses as allowed", decisions(1, 30, 1000, 0), maxReleases(1), onePod, nil},
		{"many empty handles and one address too many", decisions(2, 30, 1000, 0), maxReleases(1), onePod,
			&reaper.LimitError{Limit: "limits.maxReleases", Planned: 2, Allocations: 32, Allowed: "1"}},
		{"many empty handles that stay do not make the fraction smaller", decisions(16, 15, 0, 1000), nil, onePod,
			&reaper.LimitError{Limit: "limits.maxFraction", Planned: 16, Allocations: 31, Allowed: "a fraction of 0.5"}},
		{"empty handles do not count for minEntries", decisions(5, 1, 5, 1000), nil, onePod, nil},
		{"empty handles only", decisions(0, 0, 1000, 0), minEntries(0), onePod, nil},
		{"empty handles only, in an empty cluster", decisions(0, 0, 1, 0), nil, censusOf(),
			&reaper.LimitError{Limit: "the cluster has no pods", Allowed: "none"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limits := policy.Default().Limits
			if tt.limits != nil {
				tt.limits(&limits)
			}
			err := tt.plan.Check(limits, tt.census)
			var got *reaper.LimitError
			if err != nil && !errors.As(err, &got) {
				t.Fatalf("Check: %v, want a LimitError", err)
			}
			equal(t, "refusal", got, tt.want)
		})
	}
}

func TestLimitErrorHasTheFigures(t *testing.T) {
	err := planOf(t, 11, 20).Check(policy.Default().Limits, censusOf(reaper.Pod{Ref: web}))
	want := "limits.maxFraction: the plan releases 11 of 20 allocations, allowed is a fraction of 0.5; nothing was released"
	equal(t, "message", fmt.Sprint(err), want)
}
