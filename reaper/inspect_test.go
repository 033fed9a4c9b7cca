package reaper_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// inspect looks at pools, with the default policy as it is changed, beside pods,
// StatefulSets and nodes; without any of these, nobody is asked.
func inspect(t *testing.T, s scene) reaper.Report {
	t.Helper()
	w := newWorld(fixedStore(s.pools))
	w.policy = s.terms()
	w.pods.Add(s.pods...)
	w.pods.AddSets(s.sets...)
	w.pods.AddNodes(s.nodes...)
	o := w.options()
	o.Ledgers = nil
	if s.pods == nil {
		o.Cluster = nil
	}
	report, err := reaper.Inspect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// A said is what tables of reports compare.
type said struct {
	Decision reaper.Verdict
	Reason   reaper.Reason
	Outcome  reaper.Outcome
}

func TestInspectJudgesAsARunDoes(t *testing.T) {
	held := func(r reaper.Reason) said { return said{reaper.Held, r, reaper.Kept} }
	orphan := func(r reaper.Reason) said { return said{reaper.Orphaned, r, reaper.Planned} }
	entry := func(change func(*reaper.Allocation)) []reaper.Pool {
		r := webEntry()
		if change != nil {
			change(&r)
		}
		return []reaper.Pool{poolOf(r)}
	}
	sibling := webEntry()
	sibling.Key, sibling.IP, sibling.Token = "2", ip2, "t2"
	dns := reaper.Pod{Ref: reaper.PodRef{Namespace: "default", Name: "dns"}}
	for _, tt := range []struct {
		name  string
		scene scene
		want  said // of the first entry
	}{
		{"nobody is asked", scene{pools: entry(nil)}, held(reaper.NoCensus)},
		{"nobody is asked of what names nobody", scene{pools: entry(func(r *reaper.Allocation) { r.Owner = reaper.Owner{} })},
			held(reaper.OwnerUnknown)},
		{"nobody is asked of what cannot be read", scene{pools: entry(func(r *reaper.Allocation) { r.Unreadable = "odd" })},
			held(reaper.Unreadable)},
		{"nobody is asked of what is no pod's", scene{pools: entry(func(r *reaper.Allocation) { r.Foreign = "a tunnel" })},
			held(reaper.NotPodOwned)},
		{"the pod is there", scene{pools: entry(nil), pods: []reaper.Pod{showing(web, ip1)}},
			said{reaper.InUse, reaper.PodPresent, reaper.Kept}},
		{"the pod is gone: its grace period counts as over", scene{pools: entry(nil), pods: []reaper.Pod{dns}},
			orphan(reaper.PodAbsent)},
		{"so does the wait for a new sandbox", scene{pools: []reaper.Pool{poolOf(webEntry(), sibling)}, pods: []reaper.Pod{showing(web, ip2)}},
			orphan(reaper.SandboxReplaced)},
		{"and that of a remnant", scene{pools: entry(func(r *reaper.Allocation) { r.EmptyHandle = true }), pods: []reaper.Pod{dns}},
			orphan(reaper.EmptyHandle)},
		{"and that of a bond", scene{pools: []reaper.Pool{poolOf(bound(webEntry()), bound(sibling))}, pods: []reaper.Pod{dns}},
			orphan(reaper.PodAbsent)},
		{"age counts", scene{pools: entry(func(r *reaper.Allocation) { r.Created = noon.Add(-4 * time.Minute) }), pods: []reaper.Pod{dns}},
			held(reaper.TooYoung)},
		{"a StatefulSet counts", scene{
			pools: entry(func(r *reaper.Allocation) { r.Owner.Pod.Name = "web-0" }), pods: []reaper.Pod{dns},
			sets: []reaper.StatefulSet{{Namespace: "default", Name: "web", Replicas: 1}},
		}, held(reaper.Retained)},
		{"a node counts", scene{
			pools: entry(func(r *reaper.Allocation) { r.Owner.Node = "node-a" }), pods: []reaper.Pod{dns},
			nodes: []reaper.Node{{Name: "node-a"}},
		}, held(reaper.NodeUnreachable)},
		{"the policy counts", scene{
			pools: entry(nil), pods: []reaper.Pod{dns},
			policy: func(p *policy.Policy) { p.Namespaces.Exclude = []string{"default"} },
		}, held(reaper.OutOfScope)},
		{"a limit does not", scene{
			pools: entry(nil), pods: []reaper.Pod{dns},
			policy: func(p *policy.Policy) { *p.Limits.MinEntries = 1 },
		}, orphan(reaper.PodAbsent)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report := inspect(t, tt.scene)
			e := report.Entries[0]
			equal(t, "entry", said{e.Verdict, e.Reason, e.Outcome}, tt.want)
			if e.FirstSeen != nil || e.Due != nil {
				t.Errorf("first seen %v, due %v: a file remembers neither", e.FirstSeen, e.Due)
			}
			if !report.Run.DryRun {
				t.Error("the report does not say that it is of a dry run")
			}
			planned := 0
			for _, e := range report.Entries {
				if e.Outcome == reaper.Planned {
					planned++
				}
			}
			equal(t, "planned", report.Summary.Planned, planned)
		})
	}
}

// bound ties an entry to the others of its sandbox.
func bound(r reaper.Allocation) reaper.Allocation {
	r.Group = "s1"
	return r
}

func TestInspectWarnsOfWhatFilesCannotTell(t *testing.T) {
	const (
		nobody   = "no pods were given"
		memory   = "offline, every grace period counts as over"
		noSets   = "no StatefulSets"
		noNodes  = "no nodes"
		limit    = "a run would refuse this plan: limits.maxFraction: the plan releases 1 of 1"
		empty    = "a run would refuse this plan: the cluster has no pods"
		stranger = "the dump has no pod of the namespaces default: "
	)
	onNode := webEntry()
	onNode.Owner.Node = "node-a"
	pods := func(namespace string) []reaper.Pod {
		return []reaper.Pod{{Ref: reaper.PodRef{Namespace: namespace, Name: "dns"}}}
	}
	sets := []reaper.StatefulSet{{Namespace: "x", Name: "db", Replicas: 1}}
	ignore := func(p *policy.Policy) {
		p.Protection.StatefulSets = policy.Ignore
		p.Nodes.Unreachable = policy.Release
	}
	for _, tt := range []struct {
		name  string
		scene scene
		want  []string
	}{
		{"no pods", scene{pools: []reaper.Pool{poolOf(onNode)}}, []string{nobody}},
		{"pods alone", scene{pools: []reaper.Pool{poolOf(webEntry())}, pods: pods("default")}, []string{memory, noSets}},
		{"pods and StatefulSets", scene{pools: []reaper.Pool{poolOf(webEntry())}, pods: pods("default"), sets: sets}, []string{memory}},
		{"no nodes beside an entry that names one", scene{pools: []reaper.Pool{poolOf(onNode)}, pods: pods("default"), sets: sets},
			[]string{memory, noNodes}},
		{"nodes", scene{pools: []reaper.Pool{poolOf(onNode)}, pods: pods("default"), sets: sets, nodes: []reaper.Node{{Name: "node-b"}}},
			[]string{memory}},
		{"a policy that asks for neither", scene{pools: []reaper.Pool{poolOf(onNode)}, pods: pods("default"), policy: ignore}, []string{memory}},
		{"pods of another namespace", scene{pools: []reaper.Pool{poolOf(webEntry())}, pods: pods("x"), sets: sets}, []string{memory, stranger}},
		{"no pods in the list", scene{pools: []reaper.Pool{poolOf(webEntry())}, pods: []reaper.Pod{}, sets: sets}, []string{memory, empty}},
		{"a limit", scene{pools: []reaper.Pool{poolOf(webEntry())}, pods: pods("default"), sets: sets,
			policy: func(p *policy.Policy) { *p.Limits.MinEntries = 1 }}, []string{memory, limit}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := inspect(t, tt.scene).Warnings
			if !slices.EqualFunc(got, tt.want, strings.Contains) {
				t.Errorf("warnings = %q, want those with %q", got, tt.want)
			}
		})
	}
}

func TestInspectNamesNoMoreThanFiveNamespaces(t *testing.T) {
	var entries []reaper.Allocation
	for _, namespace := range []string{"g", "f", "e", "d", "c", "b", "a", "a"} {
		r := webEntry()
		r.Owner.Pod.Namespace = namespace
		entries = append(entries, r)
	}
	report := inspect(t, scene{pools: []reaper.Pool{poolOf(entries...)}, pods: []reaper.Pod{{Ref: web}}})
	const want = "the dump has no pod of the namespaces a, b, c, d, e and 2 more: was it taken of all namespaces?"
	if got := report.Warnings[len(report.Warnings)-1]; got != want {
		t.Errorf("warning = %q, want %q", got, want)
	}
}

func TestInspectReportsWhatCannotBeRead(t *testing.T) {
	w := newWorld(excerpt(&reaper.PoolError{Pool: "kube-system/bad", Err: errors.New("spec.range: no")}, poolOf(webEntry())))
	o := w.options()
	o.Cluster, o.Ledgers = nil, nil
	report, err := reaper.Inspect(t.Context(), o)
	var partial *reaper.PartialError
	if !errors.As(err, &partial) || err.Error() != "whereabouts: kube-system/bad: spec.range: no" {
		t.Errorf("Inspect: %v, want a PartialError", err)
	}
	equal(t, "backend", report.Backends[0], reaper.BackendReport{
		Name: "whereabouts", Status: reaper.StatusPartial, Message: "kube-system/bad: spec.range: no",
		Counts: reaper.Counts{Entries: 1, Held: 1},
	})
}

func TestInspectPassesOverADisabledBackend(t *testing.T) {
	w := newWorld(excerpt(poolOf(webEntry())))
	w.policy.Backends["whereabouts"] = policy.Backend{Enabled: policy.Off}
	o := w.options()
	o.Cluster = nil
	report, err := reaper.Inspect(t.Context(), o)
	if err != nil || len(report.Entries) != 0 || report.Backends[0].Status != reaper.StatusSkipped {
		t.Errorf("Inspect = %+v, %v, want a skipped backend", report, err)
	}
}
