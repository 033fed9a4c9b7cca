package judge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// messages returns the messages of refusals, in lines.
func messages(refusals []judge.Refusal) string {
	var lines []string
	for _, refusal := range refusals {
		lines = append(lines, refusal.Message)
	}
	return strings.Join(lines, "\n")
}

// planOf returns a plan over so many addresses that are due, addresses that stay, and empty
// handles of both kinds.
func planOf(due, stay, dueHandles, stayingHandles int) judge.Plan {
	var all []judge.Decision
	add := func(n int, verdict judge.Verdict, emptyHandle bool) {
		for range n {
			all = append(all, decided(verdict, ipam.Allocation{EmptyHandle: emptyHandle}))
		}
	}
	add(dueHandles, judge.Orphaned, true)
	add(due, judge.Orphaned, false)
	add(stayingHandles, judge.Held, true)
	add(stay, judge.InUse, false)
	return judge.MakePlan(all)
}

func maxReleases(n int) func(*policy.Limits) { return func(l *policy.Limits) { l.MaxReleases = &n } }
func minEntries(n int) func(*policy.Limits)  { return func(l *policy.Limits) { l.MinEntries = &n } }

// Promise 1. Limits are fractions of addresses. An allocation without an address counts
// on neither side.
func TestLimits(t *testing.T) {
	onePod := censusOf(census.Pod{Ref: web})
	for _, tt := range []struct {
		name   string
		plan   judge.Plan
		limits func(*policy.Limits)
		census census.Census
		want   string // empty if the plan is allowed
	}{
		{"nothing to do in an empty cluster", planOf(0, 100, 0, 0), nil, censusOf(), ""},
		{"a single release in an empty cluster", planOf(1, 0, 0, 0), nil, censusOf(),
			"the cluster has no pods: the plan would release 1 of 1 allocations"},
		{"a single release in a cluster of one pod", planOf(1, 0, 0, 0), nil, onePod, ""},
		{"no limit of releases", planOf(50, 50, 0, 0), nil, onePod, ""},
		{"as many releases as allowed", planOf(10, 90, 0, 0), maxReleases(10), onePod, ""},
		{"one release too many", planOf(11, 89, 0, 0), maxReleases(10), onePod,
			"limits.maxReleases: the plan would release 11 of 100 allocations, more than the allowed 10"},
		{"exactly the fraction", planOf(10, 10, 0, 0), nil, onePod, ""},
		{"more than the fraction", planOf(11, 9, 0, 0), nil, onePod,
			"limits.maxFraction: the plan would release 11 of 20 allocations, more than the allowed 50 %"},
		{"more than the fraction of too few", planOf(19, 0, 0, 0), nil, onePod, ""},
		{"the fraction counts however few", planOf(1, 0, 0, 0), minEntries(0), onePod,
			"limits.maxFraction: the plan would release 1 of 1 allocations, more than the allowed 50 %"},

		{"many empty handles and as many addresses as allowed", planOf(1, 30, 1000, 0), maxReleases(1), onePod, ""},
		{"many empty handles and one address too many", planOf(2, 30, 1000, 0), maxReleases(1), onePod,
			"limits.maxReleases: the plan would release 2 of 32 allocations, more than the allowed 1"},
		{"many empty handles that stay do not make the fraction smaller", planOf(16, 15, 0, 1000), nil, onePod,
			"limits.maxFraction: the plan would release 16 of 31 allocations, more than the allowed 50 %"},
		{"empty handles do not count for minEntries", planOf(5, 1, 5, 1000), nil, onePod, ""},
		{"empty handles only, in an empty cluster", planOf(0, 0, 1, 0), nil, censusOf(),
			"the cluster has no pods: the plan would release 0 of 0 allocations"},
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

// manyPods returns n pods that show no address.
func manyPods(n int) []census.Pod {
	pods := make([]census.Pod, n)
	for i := range pods {
		pods[i].Ref = ipam.PodRef{Namespace: "crowd", Name: fmt.Sprint("pod-", i)}
	}
	return pods
}

// manyNodes returns n ready nodes. The list is nil, as if it was not read, only if n is negative.
func manyNodes(n int) []census.Node {
	if n < 0 {
		return nil
	}
	nodes := make([]census.Node, n)
	for i := range nodes {
		nodes[i] = ready(fmt.Sprint("node-", i))
	}
	return nodes
}

// Promise 1, 2, 9.
func TestCensusIsBelievedUpToADropByAFraction(t *testing.T) {
	refused := func(what string, now, then int, fraction string) string {
		return fmt.Sprintf("limits.maxPodDrop: the cluster has %d %s, down from %d in the last run, a drop of more than the allowed %s", now, what, then, fraction)
	}
	type figures struct{ Pods, Nodes int }
	for _, tt := range []struct {
		name      string
		then, now figures
		limits    func(*policy.Limits)
		want      string // why the census is not believed, in lines; empty if it is
	}{
		{"the first run", figures{0, 0}, figures{1, 1}, nil, ""},
		{"exactly the fraction of pods", figures{100, 10}, figures{50, 10}, nil, ""},
		{"one pod more", figures{100, 10}, figures{49, 10}, nil, refused("unfinished pods", 49, 100, "50 %")},
		{"no pod is left", figures{20, 0}, figures{0, 0}, nil, refused("unfinished pods", 0, 20, "50 %")},
		{"too few pods to tell", figures{19, 0}, figures{0, 0}, nil, ""},
		{"few pods, where few are enough", figures{2, 0}, figures{0, 0}, minEntries(2), refused("unfinished pods", 0, 2, "50 %")},
		{"one node more", figures{100, 4}, figures{100, 1}, nil, refused("nodes", 1, 4, "50 %")},
		{"two nodes are not", figures{100, 2}, figures{100, 0}, nil, ""},
		{"the nodes were not read", figures{100, 100}, figures{100, -1}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limits := policy.Default().Limits
			if tt.limits != nil {
				tt.limits(&limits)
			}
			last := ledger.Ledger{Figures: census.Figures(tt.then)}
			plan := judge.MakePlan(situation{pools: []ipam.Pool{poolOf(webAllocation())}}.judge(t, noon))
			census := census.New(time.Now(), manyPods(tt.now.Pods), nil, manyNodes(tt.now.Nodes)...)
			refusals := plan.Believe(limits, census, last, noon, time.Minute)
			equal(t, "refusals", messages(refusals), tt.want)
		})
	}
}

// Promise 2. An allocation that is ownerless by this census counts, even if another
// reason keeps it. An allocation that the rules keep for a reason other than a missing
// pod does not count.
func TestDropCountsOnlyIfAnAllocationIsOwnerless(t *testing.T) {
	rule := func(p *policy.Policy) {
		p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"*"}}, Hold: true}}
	}
	for _, tt := range []struct {
		name   string
		entry  func(*ipam.Allocation)
		policy func(*policy.Policy)
		pods   []census.Pod
		sets   []census.StatefulSet
		want   bool
	}{
		{"due", nil, withGrace(0), nil, nil, true},
		{"too young", func(a *ipam.Allocation) { a.Created = noon }, nil, nil, nil, true},
		{"held by a rule", nil, rule, nil, nil, true},
		{"out of scope", nil, func(p *policy.Policy) { p.Namespaces.Exclude = []string{"default"} }, nil, nil, true},
		{"without a token", func(a *ipam.Allocation) { a.Token = "" }, nil, nil, nil, true},
		{"retained", func(a *ipam.Allocation) { a.Owner.Pod.Name = "db-0" }, nil, nil,
			[]census.StatefulSet{{Namespace: "default", Name: "db", Replicas: 1}}, true},
		{"on a node that is away", func(a *ipam.Allocation) { a.Owner.Node = "node-0" }, nil, nil, nil, true},
		{"in use", nil, nil, []census.Pod{showing(web, ip1)}, nil, false},
		{"not readable", func(a *ipam.Allocation) { a.Unreadable = "no JSON" }, nil, nil, nil, false},
		{"not a pod's", func(a *ipam.Allocation) { a.Foreign = "a tunnel" }, nil, nil, nil, false},
		{"without an owner", func(a *ipam.Allocation) { a.Owner = ipam.Owner{} }, nil, nil, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			if tt.entry != nil {
				tt.entry(&a)
			}
			s := situation{policy: tt.policy, pools: []ipam.Pool{poolOf(a)}, pods: tt.pods, sets: tt.sets, nodes: []census.Node{notReady("node-0")}}
			refusals := judge.MakePlan(s.judge(t, noon)).Believe(policy.Default().Limits, censusOf(manyPods(1)...), ledger.Ledger{Figures: census.Figures{Pods: 100}}, noon, time.Minute)
			equal(t, "refused", len(refusals) > 0, tt.want)
		})
	}
}

// Promise 2. The pods are as few as in the doubted list. If nodes vanished since then, the
// two lists do not agree.
func TestDropIsBelievedOnlyWhileTheNodesStay(t *testing.T) {
	plan := judge.MakePlan(situation{pools: []ipam.Pool{poolOf(webAllocation())}}.judge(t, noon))
	last := ledger.Ledger{
		Figures: census.Figures{Pods: 200, Nodes: 10},
		Doubt:   ledger.Doubt{Figures: census.Figures{Pods: 20, Nodes: 10}, At: noon.Unix()},
	}
	for nodes, want := range map[int]bool{10: false, 5: false, 4: true} {
		census := census.New(time.Now(), manyPods(20), nil, manyNodes(nodes)...)
		refusals := plan.Believe(policy.Default().Limits, census, last, noon.Add(time.Hour), time.Minute)
		equal(t, fmt.Sprint("refused with ", nodes, " nodes"), len(refusals) > 0, want)
	}
}
