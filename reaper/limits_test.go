package reaper_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/report"
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
			"the cluster has no pods: the plan releases 1 of 1 allocations (allowed: none)"},
		{"a single release in a cluster of one pod", planOf(1, 0, 0, 0), nil, onePod, ""},
		{"no limit of releases", planOf(50, 50, 0, 0), nil, onePod, ""},
		{"as many releases as allowed", planOf(10, 90, 0, 0), maxReleases(10), onePod, ""},
		{"one release too many", planOf(11, 89, 0, 0), maxReleases(10), onePod,
			"limits.maxReleases: the plan releases 11 of 100 allocations (allowed: 10)"},
		{"exactly the fraction", planOf(10, 10, 0, 0), nil, onePod, ""},
		{"more than the fraction", planOf(11, 9, 0, 0), nil, onePod,
			"limits.maxFraction: the plan releases 11 of 20 allocations (allowed: a fraction of 0.5)"},
		{"more than the fraction of too few", planOf(19, 0, 0, 0), nil, onePod, ""},
		{"the fraction counts however few", planOf(1, 0, 0, 0), minEntries(0), onePod,
			"limits.maxFraction: the plan releases 1 of 1 allocations (allowed: a fraction of 0.5)"},

		{"many empty handles and as many addresses as allowed", planOf(1, 30, 1000, 0), maxReleases(1), onePod, ""},
		{"many empty handles and one address too many", planOf(2, 30, 1000, 0), maxReleases(1), onePod,
			"limits.maxReleases: the plan releases 2 of 32 allocations (allowed: 1)"},
		{"many empty handles that stay do not make the fraction smaller", planOf(16, 15, 0, 1000), nil, onePod,
			"limits.maxFraction: the plan releases 16 of 31 allocations (allowed: a fraction of 0.5)"},
		{"empty handles do not count for minEntries", planOf(5, 1, 5, 1000), nil, onePod, ""},
		{"empty handles only, in an empty cluster", planOf(0, 0, 1, 0), nil, censusOf(),
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

// ledgerWithFigures returns a ledger with the figures of its last run.
func ledgerWithFigures(t *testing.T, pods, nodes int) ledger.Ledger {
	t.Helper()
	return ledgerOfText(t, fmt.Sprintf(`{"seen":{},"figures":{"pods":%d,"nodes":%d}}`, pods, nodes))
}

// limitError returns the error as a *LimitError, or nil.
func limitError(t *testing.T, err error) *judge.LimitError {
	t.Helper()
	var limit *judge.LimitError
	if err != nil && !errors.As(err, &limit) {
		t.Fatalf("%v, want a LimitError", err)
	}
	return limit
}

// Promise 1, 2, 9.
func TestCensusIsBelievedUpToADropByAFraction(t *testing.T) {
	refused := func(what string, now, then int, fraction string) string {
		return fmt.Sprintf("limits.maxPodDrop: the cluster has %d %s, down from %d in the last run (allowed: a drop by a fraction of %s)", now, what, then, fraction)
	}
	type figures struct{ pods, nodes int }
	for _, tt := range []struct {
		name      string
		then, now figures
		limits    func(*policy.Limits)
		want      string // why the census is not believed, in lines; empty if it is
	}{
		{"the first run", figures{0, 0}, figures{1, 1}, nil, ""},
		{"exactly the fraction of pods", figures{100, 10}, figures{50, 10}, nil, ""},
		{"one pod more", figures{100, 10}, figures{49, 10}, nil, refused("unfinished pods", 49, 100, "0.5")},
		{"no pod is left", figures{20, 0}, figures{0, 0}, nil, refused("unfinished pods", 0, 20, "0.5")},
		{"too few pods to tell", figures{19, 0}, figures{0, 0}, nil, ""},
		{"few pods, where few are enough", figures{2, 0}, figures{0, 0}, minEntries(2), refused("unfinished pods", 0, 2, "0.5")},
		{"one node more", figures{100, 4}, figures{100, 1}, nil, refused("nodes", 1, 4, "0.5")},
		{"two nodes are not", figures{100, 2}, figures{100, 0}, nil, ""},
		{"the nodes were not read", figures{100, 100}, figures{100, -1}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limits := policy.Default().Limits
			if tt.limits != nil {
				tt.limits(&limits)
			}
			plan := judge.MakePlan(situation{pools: []ipam.Pool{poolOf(webAllocation())}}.judge(t, noon))
			census := census.New(time.Now(), manyPods(tt.now.pods), nil, manyNodes(tt.now.nodes)...)
			refusals := plan.Believe(limits, census, ledgerWithFigures(t, tt.then.pods, tt.then.nodes), noon, time.Minute)
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
			refusals := judge.MakePlan(s.judge(t, noon)).Believe(policy.Default().Limits, censusOf(manyPods(1)...), ledgerWithFigures(t, 100, 0), noon, time.Minute)
			equal(t, "refused", len(refusals) > 0, tt.want)
		})
	}
}

// afterDrop returns a harness whose last run found 40 more pods. 30 of them are gone by
// now, and 10.0.0.2 has lost its owner.
func afterDrop(t *testing.T) (*harness, *backendtest.Memory) {
	t.Helper()
	h, m := memoryHarness(t, "live-1", "live-2")
	h.pods.Add(manyPods(40)...)
	h.run(t)
	for _, pod := range manyPods(40)[10:] {
		h.pods.Remove(pod.Ref)
	}
	h.pods.Remove(app("live-2").Pod)
	return h, m
}

// Promise 2, 5, 9. A refused run does not save the lower figures. So the next run
// refuses too, until the pods are back.
func TestDropIsRefusedByEveryRunUntilThePodsAreBack(t *testing.T) {
	h, m := afterDrop(t)
	h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	before := contentsOf(t, m)
	const doubted = `{"seen":{},"figures":{"pods":42},"doubt":{"pods":11,"at":1772366400}}`
	for _, dryRun := range []bool{false, true, false} {
		h.policy.DryRun = &dryRun
		rep, err := reaper.Run(t.Context(), h.options())
		limit := limitError(t, err)
		if limit == nil || messages(limit.Refusals) != "limits.maxPodDrop: the cluster has 11 unfinished pods, down from 42 in the last run (allowed: a drop by a fraction of 0.5)" {
			t.Errorf("run: %v, want it refused with the figures", err)
		}
		equal(t, "store", contentsOf(t, m), before)
		equal(t, "ledger", h.ledgers.text(t), doubted)
		equal(t, "records", len(h.journal.Read().Records), 0)
		equal(t, "summary", rep.Summary, report.Counts{Entries: 2, InUse: 1, Suspected: 1})
		h.now = h.now.Add(15 * time.Minute)
	}
	h.pods.Add(manyPods(40)...)
	h.run(t)
	h.now = h.now.Add(time.Hour)
	equal(t, "released once they are back", h.run(t).Summary.Released, 1)
}

// A nightly scale-down is believed as soon as a second list confirms it, a grace period
// after the first.
func TestDropIsBelievedIfASecondListConfirmsIt(t *testing.T) {
	for _, tt := range []struct {
		name   string
		after  time.Duration
		change func(*testing.T, *harness)
		want   bool
	}{
		{"a grace period later", time.Hour, nil, true},
		{"too early", 50 * time.Minute, nil, false},
		{"the pods dropped again", time.Hour, func(_ *testing.T, h *harness) {
			for _, pod := range manyPods(40) {
				h.pods.Remove(pod.Ref)
			}
		}, false},
		{"the pods were back in between", time.Hour, func(t *testing.T, h *harness) {
			h.pods.Add(manyPods(40)...)
			h.run(t)
			for _, pod := range manyPods(40)[10:] {
				h.pods.Remove(pod.Ref)
			}
		}, false},
		{"the pods were back in between, in a run over a limit", time.Hour, func(t *testing.T, h *harness) {
			h.pods.Add(manyPods(40)...)
			before := h.policy
			h.policy.GracePeriod = &policy.Duration{}
			h.policy.Limits.MaxFraction, h.policy.Limits.MinEntries = new(0.1), new(2)
			_, err := reaper.Run(t.Context(), h.options())
			equal(t, "over a limit", limitError(t, err) != nil, true)
			h.policy = before
			for _, pod := range manyPods(40)[10:] {
				h.pods.Remove(pod.Ref)
			}
		}, false},
		{"ten seconds later without a grace period", 10 * time.Second, func(_ *testing.T, h *harness) {
			h.policy.GracePeriod = &policy.Duration{}
		}, false},
		{"the first refused run could not write", time.Hour, func(t *testing.T, h *harness) {
			h.ledgers.put(t, `{"seen":{},"figures":{"pods":42}}`)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := afterDrop(t)
			h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
			h.policy.Limits.MinEntries = new(5)
			_, err := reaper.Run(t.Context(), h.options())
			equal(t, "refused at first", limitError(t, err) != nil, true)
			if tt.change != nil {
				tt.change(t, h)
			}
			h.now = h.now.Add(tt.after)
			_, err = reaper.Run(t.Context(), h.options())
			equal(t, "believed", err == nil, tt.want)
		})
	}
}

// ended returns n finished pods of a nightly job farm.
func ended(n int) []census.Pod {
	pods := manyPods(n)
	for i := range pods {
		pods[i].Ref.Namespace, pods[i].Finished = "farm", true
	}
	return pods
}

// The garbage collector removes finished pods by the thousand. They say nothing about
// whether a list is complete.
func TestFinishedPodsThatAreCollectedAreNoDrop(t *testing.T) {
	h, _ := memoryHarness(t, "live-1", "live-2")
	h.pods.Add(manyPods(40)...)
	h.pods.Add(ended(2000)...)
	h.run(t)
	equal(t, "ledger", h.ledgers.text(t), `{"seen":{},"figures":{"pods":42}}`)
	for _, pod := range ended(2000) {
		h.pods.Remove(pod.Ref)
	}
	h.pods.Remove(app("live-2").Pod)
	equal(t, "released by the next run", h.run(t).Summary.Released, 1)
}

// Promise 2. The pods are as few as in the doubted list. If nodes vanished since then, the
// two lists do not agree.
func TestDropIsBelievedOnlyWhileTheNodesStay(t *testing.T) {
	plan := judge.MakePlan(situation{pools: []ipam.Pool{poolOf(webAllocation())}}.judge(t, noon))
	ledger := ledgerOfText(t, fmt.Sprintf(
		`{"seen":{},"figures":{"pods":200,"nodes":10},"doubt":{"pods":20,"nodes":10,"at":%d}}`, noon.Unix()))
	for nodes, want := range map[int]bool{10: false, 5: false, 4: true} {
		census := census.New(time.Now(), manyPods(20), nil, manyNodes(nodes)...)
		refusals := plan.Believe(policy.Default().Limits, census, ledger, noon.Add(time.Hour), time.Minute)
		equal(t, fmt.Sprint("refused with ", nodes, " nodes"), len(refusals) > 0, want)
	}
}

// Promise 2. The pods drop further before each run, each time by less than half.
func TestDropInStepsStartsTheTimeAgain(t *testing.T) {
	h, _ := afterDrop(t) // 42 to 11
	h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	h.policy.Limits.MinEntries = new(2)
	for _, left := range []int{10, 6, 4, 2, 1} {
		for _, pod := range manyPods(40)[left:] {
			h.pods.Remove(pod.Ref)
		}
		_, err := reaper.Run(t.Context(), h.options())
		equal(t, "refused", limitError(t, err) != nil, true)
		h.now = h.now.Add(15 * time.Minute)
	}
}
