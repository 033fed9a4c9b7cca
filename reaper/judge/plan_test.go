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
	var inUse judge.Omitted
	for range 10 {
		inUse.Selected = append(inUse.Selected, &ipam.Allocation{Backend: "b"})
		inUse.Others = append(inUse.Others, &ipam.Allocation{Backend: "b"}, &ipam.Allocation{Backend: "b", EmptyHandle: true})
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
		{"a part of what is due", planOf(20, 0, 0, 0).Within(half(20)), nil,
			"limits.maxFraction: without the selection, the plan releases 20 of 20 allocations (allowed: a fraction of 0.5)"},
		{"as many of a part as one run may release", planOf(20, 20, 0, 0).Within(half(20)), maxReleases(10), ""},
		{"nothing of what is due", planOf(20, 0, 0, 0).Within(make([]bool, 20)), nil, ""},
		{"beside what is in use", planOf(20, 0, 0, 0).Beside(inUse), nil, ""},
		{"beside too little that is in use", planOf(21, 0, 0, 0).Beside(inUse), nil,
			"limits.maxFraction: the plan releases 21 of 41 allocations (allowed: a fraction of 0.5)"},
		{"after earlier rounds", planOf(5, 20, 0, 0).After(map[string]int{"b": 10}), maxReleases(14),
			"limits.maxReleases: the plan releases 15 of 35 allocations (allowed: 14)"},
		{"after earlier rounds that released much", planOf(5, 15, 0, 0).After(map[string]int{"b": 11}), nil,
			"limits.maxFraction: the plan releases 16 of 31 allocations (allowed: a fraction of 0.5)"},
		{"a store outside of the cluster, by itself", inA.Beside(inUse).In(outside), nil,
			"limits.maxFraction: the plan releases 20 of 20 allocations of a (allowed: a fraction of 0.5)"},
		{"beside what another cluster may have", foreign, minEntries(11),
			"limits.maxFraction: the plan releases 11 of 11 allocations (allowed: a fraction of 0.5)"},
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

// A brief plan has no entry for what is plainly in use, unless a release may wait for it or mend it. The
// others keep their order, and what they wait for.
func TestBriefPlanLeavesOutWhatIsPlainlyInUse(t *testing.T) {
	evidence := []judge.Evidence{{Source: "pod status", Says: "it shows it"}}
	decision := func(key string, v judge.Verdict, note string, after ...int) judge.Decision {
		d := decided(v, ipam.Allocation{Key: key})
		d.Evidence, d.Note, d.After = evidence, note, after
		return d
	}
	all := []judge.Decision{
		decision("plain", judge.InUse, ""), decision("with a note", judge.InUse, "disputed"), decision("awaited", judge.InUse, ""),
		decision("unselected", judge.InUse, ""), decision("interrupted", judge.InUse, ""), decision("held", judge.Held, ""),
		decision("waits", judge.Orphaned, "", 2, 5),
	}
	all[4].Allocation.Interrupted = true
	keys := func(as []*ipam.Allocation) (keys []string) {
		for _, a := range as {
			keys = append(keys, a.Key)
		}
		return keys
	}
	for _, selected := range [][]bool{nil, {true, true, true, false, true, true, false}} {
		kept, keptSelected, left := judge.Brief(all, selected)
		var names []string
		for _, d := range kept {
			names = append(names, d.Allocation.Key)
		}
		equal(t, "kept", names, []string{"with a note", "awaited", "interrupted", "held", "waits"})
		equal(t, "what the last one waits for", kept[4].After, []int{1, 3})
		equal(t, "what it waited for", all[6].After, []int{2, 5})
		if selected == nil {
			equal(t, "selected", keptSelected, nil)
			equal(t, "left out", keys(left.Selected), []string{"plain", "unselected"})
			continue
		}
		equal(t, "selected", keptSelected, []bool{true, true, true, true, false})
		equal(t, "left out", keys(left.Selected), []string{"plain"})
		equal(t, "left out of the selection", keys(left.Others), []string{"unselected"})
	}
	_, none, _ := judge.Brief(all[:1], []bool{true})
	equal(t, "a selection of nothing is none of everything", none != nil, true)
}

// A plan finds what belongs to its orphans.
func TestPlanFindsTheOrphansOfAStore(t *testing.T) {
	w := newSequence(fixedStore{poolOf(groupOf(2)...)}, namedStore{fixedStore{{Name: "there", Allocations: []ipam.Allocation{webAllocation(), lease()}}}, "store"})
	releaseNow(&w.policy)
	plan := judge.MakePlan(w.run(t))
	equal(t, "due", plan.Due, []int{0, 1, 2})
	equal(t, "of a store", plan.Of("store"), []int{2})
	equal(t, "of another", plan.Of("elsewhere"), nil)
	equal(t, "without one", plan.Only(map[int]bool{0: true, 2: true}).Due, []int{0, 2})
	equal(t, "pools", [2]string{plan.Pool(0), plan.Pool(2)}, [2]string{"pool", "there"})
	equal(t, "sizes", [2]int{plan.PoolSize(0), plan.PoolSize(3)}, [2]int{2, 2})
	equal(t, "no orphan", plan.Orphan(3).Allocation(), nil)
	equal(t, "an orphan", plan.Orphan(2).Allocation().Key, "1")
	equal(t, "owners", len(judge.Owners(plan.Orphans()[:1])), 2) // with that of its sibling
}
