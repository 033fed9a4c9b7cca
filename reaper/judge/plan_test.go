package judge_test

import (
	"testing"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// Promise 1. The fraction counts all that is due and all that there is: what the selection and the report
// leave out, and what earlier rounds of the run released.
func TestLimitsCountMoreThanThePlan(t *testing.T) {
	half := func(n int) []bool {
		selected := make([]bool, n)
		for i := range n / 2 {
			selected[i] = true
		}
		return selected
	}
	var inUse []judge.Live
	for range 20 {
		inUse = append(inUse, judge.Live{Allocation: &ipam.Allocation{Backend: "b"}})
	}
	inUse = append(inUse, judge.Live{Allocation: &ipam.Allocation{Backend: "b", EmptyHandle: true}})
	beside := func(p judge.Plan) judge.Verdicts { return judge.Verdicts{Decisions: p.Decisions, InUse: inUse} }
	after := func(p judge.Plan, released int) judge.Plan {
		return judge.PlanOf(judge.Verdicts{Decisions: p.Decisions}, ipam.Inventory{}, map[string]int{"b": released})
	}
	outside := ipam.Inventory{Listings: []ipam.Listing{{Backend: "a", Outside: &ipam.Store{}}, {Backend: "b"}}}
	inA := planOf(20, 0, 0, 0)
	for _, d := range inA.Decisions {
		d.Allocation.Backend = "a"
	}
	foreign := planOf(11, 9, 0, 0)
	for i := range foreign.Decisions[11:] {
		foreign.Decisions[11+i].Reason = judge.NodeForeign
	}
	for _, tt := range []struct {
		name   string
		plan   judge.Plan
		limits func(*policy.Limits)
		want   string // empty if the plan is allowed
	}{
		{"a part of what is due", planOf(20, 0, 0, 0).Select(half(20)), nil,
			"limits.maxFraction: without the selection, the plan would release 20 of 20 allocations, more than the allowed 50 %"},
		{"as many of a part as one run may release", planOf(20, 20, 0, 0).Select(half(20)), maxReleases(10), ""},
		{"nothing of what is due", planOf(20, 0, 0, 0).Select(make([]bool, 20)), nil, ""},
		{"beside what is in use", judge.PlanOf(beside(planOf(20, 0, 0, 0)), ipam.Inventory{}, nil), nil, ""},
		{"beside too little that is in use", judge.PlanOf(beside(planOf(21, 0, 0, 0)), ipam.Inventory{}, nil), nil,
			"limits.maxFraction: the plan would release 21 of 41 allocations, more than the allowed 50 %"},
		{"after earlier rounds", after(planOf(5, 20, 0, 0), 10), maxReleases(14),
			"limits.maxReleases: the plan would release 15 of 35 allocations, more than the allowed 14"},
		{"after earlier rounds that released much", after(planOf(5, 15, 0, 0), 11), nil,
			"limits.maxFraction: the plan would release 16 of 31 allocations, more than the allowed 50 %"},
		{"a store outside of the cluster, by itself", judge.PlanOf(beside(inA), outside, nil), nil,
			"limits.maxFraction: the plan would release 20 of 20 allocations of a, more than the allowed 50 %"},
		{"beside what another cluster may have", foreign, minEntries(11),
			"limits.maxFraction: the plan would release 11 of 11 allocations, more than the allowed 50 %"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limits := policy.Default().Limits
			if tt.limits != nil {
				tt.limits(&limits)
			}
			equal(t, "refusals", messages(tt.plan.Check(limits, censusOf(census.Pod{Ref: web}))), tt.want)
		})
	}
}

// A plan finds what belongs to its orphans.
func TestPlanFindsTheOrphansOfAStore(t *testing.T) {
	w := newSequence(fixedStore{poolOf(groupOf(2)...)}, namedStore{fixedStore{{Name: "there", Allocations: []ipam.Allocation{webAllocation(), lease()}}}, "store"})
	releaseNow(&w.policy)
	plan := judge.MakePlan(w.run(t))
	equal(t, "due", plan.Due, []int{0, 1, 2})
	equal(t, "sizes", [2]int{plan.PoolSize(0), plan.PoolSize(3)}, [2]int{2, 2})
	equal(t, "no orphan", plan.Orphan(3).Allocation(), nil)
	equal(t, "an orphan", plan.Orphan(2).Allocation().Key, "1")
	equal(t, "owners", len(judge.Owners(plan.Orphans()[:1])), 2) // with that of its sibling
}
