package reaper_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// many returns so many pods, which show no address.
func many(n int) []reaper.Pod {
	pods := make([]reaper.Pod, n)
	for i := range pods {
		pods[i].Ref = reaper.PodRef{Namespace: "crowd", Name: fmt.Sprint("pod-", i)}
	}
	return pods
}

// park returns so many nodes, all ready, in a list that is never nil.
func park(n int) []reaper.Node {
	nodes := make([]reaper.Node, n)
	for i := range nodes {
		nodes[i] = ready(fmt.Sprint("node-", i))
	}
	return nodes
}

// figuresOf returns a ledger whose last run found that many.
func figuresOf(t *testing.T, pods, nodes int) reaper.Ledger {
	t.Helper()
	l, err := reaper.DecodeLedger(fmt.Appendf(nil, `{"version":1,"seen":{},"figures":{"pods":%d,"nodes":%d}}`, pods, nodes))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// refusal returns the error as the refusal that it is, or nil.
func refusal(t *testing.T, err error) *reaper.LimitError {
	t.Helper()
	var limit *reaper.LimitError
	if err != nil && !errors.As(err, &limit) {
		t.Fatalf("%v, want a LimitError", err)
	}
	return limit
}

// Promise 1, 2, 9.
func TestCensusIsBelievedUpToADrop(t *testing.T) {
	refused := func(what string, now, then int, fraction string) string {
		return fmt.Sprintf("the cluster has %d %s, in the last run it had %d; allowed is a drop by a fraction of %s", now, what, then, fraction)
	}
	type figures struct{ pods, nodes int }
	for _, tt := range []struct {
		name      string
		then, now figures
		limits    func(*policy.Limits)
		want      string // what is not believed, if it is not empty
	}{
		{"nothing changed", figures{100, 10}, figures{100, 10}, nil, ""},
		{"more than there were", figures{100, 10}, figures{1000, 100}, nil, ""},
		{"the first run", figures{0, 0}, figures{1, 1}, nil, ""},
		{"exactly the fraction of pods", figures{100, 10}, figures{50, 10}, nil, ""},
		{"one pod more", figures{100, 10}, figures{49, 10}, nil, refused("pods", 49, 100, "0.5")},
		{"exactly the fraction of an odd number", figures{21, 0}, figures{11, 0}, nil, ""},
		{"one more of an odd number", figures{21, 0}, figures{10, 0}, nil, refused("pods", 10, 21, "0.5")},
		{"no pod is left", figures{20, 0}, figures{0, 0}, nil, refused("pods", 0, 20, "0.5")},
		{"too few pods to tell", figures{19, 0}, figures{0, 0}, nil, ""},
		{"few pods, where few are enough", figures{2, 0}, figures{0, 0}, minEntries(2), refused("pods", 0, 2, "0.5")},
		{"no pods, where none are enough", figures{0, 0}, figures{0, 0}, minEntries(0), ""},
		{"a small fraction", figures{100, 0}, figures{98, 0}, maxPodDrop(0.01), refused("pods", 98, 100, "0.01")},
		{"exactly a small fraction", figures{100, 0}, figures{99, 0}, maxPodDrop(0.01), ""},
		{"all may go", figures{100, 10}, figures{0, 0}, maxPodDrop(1), ""},
		{"exactly the fraction of nodes", figures{100, 4}, figures{100, 2}, nil, ""},
		{"one node more", figures{100, 4}, figures{100, 1}, nil, refused("nodes", 1, 4, "0.5")},
		{"three nodes are enough to tell", figures{100, 3}, figures{100, 1}, nil, refused("nodes", 1, 3, "0.5")},
		{"two nodes are not", figures{100, 2}, figures{100, 0}, nil, ""},
		{"pods come first", figures{100, 10}, figures{1, 1}, nil, refused("pods", 1, 100, "0.5")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limits := policy.Default().Limits
			if tt.limits != nil {
				tt.limits(&limits)
			}
			plan := reaper.MakePlan(scene{pools: []reaper.Pool{poolOf(webEntry())}}.judge(t, noon))
			census := reaper.NewCensus(time.Now(), many(tt.now.pods), nil, park(tt.now.nodes)...)
			var want *reaper.LimitError
			if tt.want != "" {
				want = &reaper.LimitError{Limit: "limits.maxPodDrop", Census: tt.want}
			}
			equal(t, "refusal", refusal(t, plan.Believe(limits, census, figuresOf(t, tt.then.pods, tt.then.nodes))), want)
		})
	}
}

func maxPodDrop(f float64) func(*policy.Limits) {
	return func(l *policy.Limits) { l.MaxPodDrop = &f }
}

func TestNodesThatNobodyAskedForHaveNotFallen(t *testing.T) {
	plan := reaper.MakePlan(scene{pools: []reaper.Pool{poolOf(webEntry())}}.judge(t, noon))
	census := censusOf(many(10)...)
	equal(t, "refusal", refusal(t, plan.Believe(policy.Default().Limits, census, figuresOf(t, 10, 100))), nil)
}

// Promise 2. Whatever has lost its owner by this census speaks, also where
// something else keeps it; what rests on no absence does not.
func TestCensusIsDoubtedWhereSomethingHasLostItsOwner(t *testing.T) {
	rule := func(p *policy.Policy) {
		p.Rules = []policy.Rule{{Match: policy.Match{Pods: []string{"*"}}, Hold: true}}
	}
	for _, tt := range []struct {
		name   string
		entry  func(*reaper.Allocation)
		policy func(*policy.Policy)
		pods   []reaper.Pod
		sets   []reaper.StatefulSet
		want   bool
	}{
		{"due", nil, longer(0), nil, nil, true},
		{"suspected", nil, nil, nil, nil, true},
		{"too young", func(r *reaper.Allocation) { r.Created = noon }, nil, nil, nil, true},
		{"held by a rule", nil, rule, nil, nil, true},
		{"out of scope", nil, func(p *policy.Policy) { p.Namespaces.Exclude = []string{"default"} }, nil, nil, true},
		{"without a token", func(r *reaper.Allocation) { r.Token = "" }, nil, nil, nil, true},
		{"reserved", func(r *reaper.Allocation) { r.Protected = "excluded" }, nil, nil, nil, true},
		{"retained", func(r *reaper.Allocation) { r.Owner.Pod.Name = "db-0" }, nil, nil,
			[]reaper.StatefulSet{{Namespace: "default", Name: "db", Replicas: 1}}, true},
		{"on a node that is away", func(r *reaper.Allocation) { r.Owner.Node = "node-0" }, nil, nil, nil, true},
		{"in use", nil, nil, []reaper.Pod{showing(web, ip1)}, nil, false},
		{"not readable", func(r *reaper.Allocation) { r.Unreadable = "no JSON" }, nil, nil, nil, false},
		{"not a pod's", func(r *reaper.Allocation) { r.Foreign = "a tunnel" }, nil, nil, nil, false},
		{"nobody's", func(r *reaper.Allocation) { r.Owner = reaper.Owner{} }, nil, nil, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := webEntry()
			if tt.entry != nil {
				tt.entry(&r)
			}
			s := scene{policy: tt.policy, pools: []reaper.Pool{poolOf(r)}, pods: tt.pods, sets: tt.sets, nodes: []reaper.Node{away("node-0")}}
			err := reaper.MakePlan(s.judge(t, noon)).Believe(policy.Default().Limits, censusOf(many(1)...), figuresOf(t, 100, 0))
			equal(t, "refused", refusal(t, err) != nil, tt.want)
		})
	}
}

// fallen is a world whose last run found 40 pods, of which 10 are left, and
// 10.0.0.2 has lost its owner.
func fallen(t *testing.T) (*world, *backendtest.Memory) {
	t.Helper()
	m := backendtest.NewMemory("memory")
	w := newWorld(m.Backend())
	w.fill(t, m, "live-1", "live-2")
	w.pods.Add(many(40)...)
	w.run(t)
	for _, pod := range many(40)[10:] {
		w.pods.Remove(pod.Ref)
	}
	w.pods.Remove(app("live-2").Pod)
	return w, m
}

// Promise 2, 5, 9. The lower figures are not remembered: the next run refuses too,
// until the pods are back.
func TestFallenCensusIsRefusedAgainAndAgain(t *testing.T) {
	w, m := fallen(t)
	before, ledger, saves := contentsOf(t, m), string(w.notes.stored), w.notes.saves
	for _, dryRun := range []bool{false, true, false} {
		w.policy.DryRun = &dryRun
		report, err := reaper.Run(t.Context(), w.options())
		limit := refusal(t, err)
		if limit == nil || limit.Census != "the cluster has 11 pods, in the last run it had 42; allowed is a drop by a fraction of 0.5" {
			t.Errorf("run: %v, want it refused with the figures", err)
		}
		equal(t, "store", contentsOf(t, m), before)
		equal(t, "ledger", string(w.notes.stored), ledger)
		equal(t, "writes of the ledger", w.notes.saves, saves)
		equal(t, "records", len(w.journal.Read().Records), 0)
		equal(t, "summary", report.Summary, reaper.Counts{Entries: 2, InUse: 1, Planned: 1})
	}
	w.pods.Add(many(40)...)
	equal(t, "released once they are back", w.run(t).Summary.Released, 1)
}

// Promise 7. An operator has looked: once is enough.
func TestFallenCensusIsBelievedWhereLimitsAreIgnored(t *testing.T) {
	w, _ := fallen(t)
	w.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	w.change = func(o *reaper.Options) { o.IgnoreLimits = true }
	equal(t, "warnings", w.run(t).Warnings, []string{"limits are ignored: limits.maxPodDrop: " +
		"the cluster has 11 pods, in the last run it had 42; allowed is a drop by a fraction of 0.5"})
	w.change, w.now = nil, noon.Add(time.Hour)
	equal(t, "released by the next run", w.run(t).Summary.Released, 1)
}

func TestFallenCensusIsBelievedWhereNothingIsOwnerless(t *testing.T) {
	w, _ := fallen(t)
	w.pods.Add(reaper.Pod{Ref: app("live-2").Pod, UID: app("live-2").UID})
	w.run(t)
	equal(t, "ledger", string(w.notes.stored), `{"version":1,"seen":{},"figures":{"pods":12}}`)
	w.pods.Remove(app("live-2").Pod)
	equal(t, "released by the next run", w.run(t).Summary.Released, 1)
}

// Nodes are counted in the runs that ask for them only.
func TestFallenNodesAreRefusedWhereTheyWereAskedFor(t *testing.T) {
	for _, tt := range []struct {
		name       string
		then, here policy.Disposition
		want       bool
	}{
		{"both times", policy.Hold, policy.Hold, true},
		{"the last time only", policy.Hold, policy.Release, false},
		{"this time only", policy.Release, policy.Hold, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, _ := fallen(t)
			w.pods.Add(append(many(40), on("node-0", "live-2"))...)
			w.pods.AddNodes(park(6)...)
			w.policy.Nodes.Unreachable = tt.then
			w.run(t)
			fewer := &backendtest.Pods{}
			fewer.Add(append(many(40), on("", "live-1"))...)
			fewer.AddNodes(park(2)...)
			w.pods = fewer
			w.policy.Nodes.Unreachable = tt.here
			_, err := reaper.Run(t.Context(), w.options())
			equal(t, "refused", refusal(t, err) != nil, tt.want)
		})
	}
}
