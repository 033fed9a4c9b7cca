package reaper_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// inspect inspects the pools of a situation. If it has no pods, StatefulSets or nodes,
// there is no Cluster.
func inspect(t *testing.T, s situation) report.Report {
	t.Helper()
	h := newHarness(fixedStore(s.pools))
	h.policy = s.terms()
	h.pods.Add(s.pods...)
	h.pods.AddSets(s.sets...)
	h.pods.AddNodes(s.nodes...)
	o := ofFiles(h)
	if s.pods == nil {
		o.Cluster = nil
	}
	report, err := reaper.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// ofFiles returns the options of a dry run on files that have what the harness has.
func ofFiles(h *harness) reaper.Options {
	h.policy.DryRun = new(true)
	o := h.options()
	o.Ledgers, o.Journals, o.Lock, o.Files = nil, nil, nil, new(reaper.Files)
	return o
}

// An inspected has the fields of a report's entry that tables compare.
type inspected struct {
	Decision judge.Verdict
	Reason   judge.Reason
	Outcome  report.Fate
}

func TestInspectDecidesAsARunDoes(t *testing.T) {
	held := func(r judge.Reason) inspected { return inspected{judge.Held, r, report.Kept} }
	orphan := func(r judge.Reason) inspected { return inspected{judge.Orphaned, r, report.Planned} }
	entry := func(change func(*ipam.Allocation)) []ipam.Pool {
		a := webAllocation()
		if change != nil {
			change(&a)
		}
		return []ipam.Pool{poolOf(a)}
	}
	older, newer, _ := reapertest.Superseded()
	dns := census.Pod{Ref: ipam.PodRef{Namespace: "default", Name: "dns"}}
	for _, tt := range []struct {
		name      string
		situation situation
		want      inspected // of the first entry
	}{
		{"there is no cluster", situation{pools: entry(nil)}, held(judge.NoCensus)},
		{"the pod is there", situation{pools: entry(nil), pods: []census.Pod{showing(web, ip1)}},
			inspected{judge.InUse, judge.PodPresent, report.Kept}},
		{"the pod is gone: its grace period counts as over", situation{pools: entry(nil), pods: []census.Pod{dns}},
			orphan(judge.PodAbsent)},
		{"so does the wait for a new sandbox", situation{pools: []ipam.Pool{poolOf(older, newer)}, pods: []census.Pod{showing(web, ip2)}},
			orphan(judge.SandboxReplaced)},
		{"and that of an empty handle", situation{pools: entry(func(a *ipam.Allocation) { a.EmptyHandle = true }), pods: []census.Pod{dns}},
			orphan(judge.EmptyHandle)},
		{"the policy counts", situation{
			pools: entry(nil), pods: []census.Pod{dns},
			policy: func(p *policy.Policy) { p.Namespaces.Exclude = []string{"default"} },
		}, held(judge.OutOfScope)},
		{"a limit counts", situation{
			pools: entry(nil), pods: []census.Pod{dns},
			policy: func(p *policy.Policy) { *p.Limits.MinEntries = 1 },
		}, inspected{judge.Orphaned, judge.PodAbsent, report.Refused}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rep := inspect(t, tt.situation)
			e := rep.Entries[0]
			equal(t, "entry", inspected{e.Verdict, e.Reason, e.Outcome}, tt.want)
			if e.FirstSeen != nil || e.Due != nil {
				t.Errorf("first seen %v, due %v: a file remembers neither", e.FirstSeen, e.Due)
			}
			if !rep.Run.DryRun {
				t.Error("the report does not say that it is of a dry run")
			}
			planned := 0
			for _, e := range rep.Entries {
				if e.Outcome == report.Planned || e.Outcome == report.Refused {
					planned++
				}
			}
			equal(t, "planned", rep.Summary.Planned, planned)
		})
	}
}

func TestInspectWarnsOfMissingLists(t *testing.T) {
	const (
		noPods  = "no pods were given"
		memory  = "files without a ledger"
		limit   = "a run would refuse this plan: limits.maxFraction: the plan would release 1 of 1"
		empty   = "a run would refuse this plan: the cluster has no pods"
		missing = "the dump has no pods of the namespaces default: "
	)
	onNode := webAllocation()
	onNode.Owner.Node = "node-a"
	pods := func(namespace string) []census.Pod {
		return []census.Pod{{Ref: ipam.PodRef{Namespace: namespace, Name: "dns"}}}
	}
	sets := []census.StatefulSet{{Namespace: "x", Name: "db", Replicas: 1}}
	for _, tt := range []struct {
		name      string
		situation situation
		want      []string
	}{
		{"no pods", situation{pools: []ipam.Pool{poolOf(onNode)}}, []string{noPods}},
		{"pods alone", situation{pools: []ipam.Pool{poolOf(webAllocation())}, pods: pods("default")}, []string{memory}},
		{"nodes", situation{pools: []ipam.Pool{poolOf(onNode)}, pods: pods("default"), sets: sets, nodes: []census.Node{{Name: "node-b"}}},
			[]string{memory}},
		{"pods of another namespace", situation{pools: []ipam.Pool{poolOf(webAllocation())}, pods: pods("x"), sets: sets}, []string{memory, missing}},
		{"no pods in the list", situation{pools: []ipam.Pool{poolOf(webAllocation())}, pods: []census.Pod{}, sets: sets}, []string{memory, empty}},
		{"a limit", situation{pools: []ipam.Pool{poolOf(webAllocation())}, pods: pods("default"), sets: sets,
			policy: func(p *policy.Policy) { *p.Limits.MinEntries = 1 }}, []string{memory, limit}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := inspect(t, tt.situation)
			got := slices.Concat(found.Run.Caveats, found.Warnings)
			if !slices.EqualFunc(got, tt.want, strings.Contains) {
				t.Errorf("warnings = %q, want those with %q", got, tt.want)
			}
		})
	}
}

func TestInspectReportsPoolsThatCannotBeRead(t *testing.T) {
	bad := &ipam.PoolError{Pool: "kube-system/bad", Err: errors.New("spec.range: no")}
	h := newHarness(scriptedStore{name: "whereabouts", steps: []step{{err: bad}, {pool: poolOf(webAllocation())}}})
	o := ofFiles(h)
	o.Cluster = nil
	rep, err := reaper.Run(t.Context(), o)
	var partial *report.PartialError
	if !errors.As(err, &partial) || err.Error() != "whereabouts: kube-system/bad: spec.range: no" {
		t.Errorf("Run: %v, want a PartialError", err)
	}
	equal(t, "backend", rep.Backends[0], report.BackendReport{
		Name: "whereabouts", Status: ipam.StatusPartial, Message: "kube-system/bad: spec.range: no", Failures: []string{"kube-system/bad: spec.range: no"},
		Counts: report.Counts{Entries: 1, Held: 1},
	})
}

// With the ledger of a dump, inspect says what a dry run on the cluster says: what waits, since when, and
// until when.
func TestInspectGoesByTheLedgerOfADump(t *testing.T) {
	h, _ := waitingHarness(t)
	h.run(t)
	h.now, h.policy.DryRun = noon.Add(10*time.Minute), new(true)
	live := h.run(t)
	o := h.options()
	memory, err := o.Ledgers.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o = ofFiles(h)
	o.Files.Remembered = memory
	found, err := reaper.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "entries", found.Entries, live.Entries)
	equal(t, "due", *entryOf(t, found, "2").Due, noon.Add(15*time.Minute))
	equal(t, "caveats", len(found.Run.Caveats), 0)
}

// What is left of a gone pod in the files of a store is told, as in a run.
func TestInspectTellsOfEndpoints(t *testing.T) {
	a := webAllocation()
	h := newHarness(tells(poolOf(a), ipam.Endpoint{Name: "n-k8s-web-eth0", Sandbox: a.Owner.Sandbox, Addresses: []netip.Addr{a.IP}}))
	h.pods.Add(census.Pod{Ref: other})
	r, err := reaper.Run(t.Context(), ofFiles(h))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "endpoint", r.Entries[0].Endpoint, "n-k8s-web-eth0")
}

// Files may have an object twice, and do not say which of two is newer.
func TestPoolThatFilesHaveTwiceCountsOnce(t *testing.T) {
	changed := webAllocation()
	changed.Token = "t2"
	elsewhere := poolOf(changed)
	elsewhere.Name = "elsewhere"
	const twice = "pool: the files have this pool twice, with different contents; the first one counts"
	for name, tt := range map[string]struct {
		pools   fixedStore
		entries int
		errors  []string
	}{
		"the same pool":                          {fixedStore{poolOf(webAllocation()), poolOf(webAllocation())}, 1, nil},
		"the same pool, with different contents": {fixedStore{poolOf(webAllocation()), poolOf(changed)}, 1, []string{twice}},
		"two pools":                              {fixedStore{poolOf(webAllocation()), elsewhere}, 2, nil},
	} {
		rep, _ := reaper.Run(t.Context(), ofFiles(newHarness(tt.pools)))
		equal(t, name+": entries", len(rep.Entries), tt.entries)
		equal(t, name+": failures", rep.Backends[0].Failures, tt.errors)
	}
}
