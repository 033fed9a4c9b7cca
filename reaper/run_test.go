package reaper_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// app returns a pod of the tests of runs, as an owner.
func app(name string) ipam.Owner {
	return ipam.Owner{
		Pod:       ipam.PodRef{Namespace: "default", Name: name},
		UID:       "uid-" + name,
		Sandbox:   "sandbox-" + name,
		Interface: "net1",
	}
}

// memoryHarness returns a harness with one store, from which these pods have addresses.
func memoryHarness(t *testing.T, pods ...string) (*harness, *backendtest.Memory) {
	t.Helper()
	m := backendtest.NewMemory("memory")
	h := newHarness(m.Backend())
	h.addPods(t, m, pods...)
	return h, m
}

// addPods allocates an address in pool a for each of these pods. Those whose name
// begins with live exist.
func (h *harness) addPods(t *testing.T, m *backendtest.Memory, names ...string) []ipam.Allocation {
	t.Helper()
	var as []ipam.Allocation
	for _, name := range names {
		a, err := m.Reserve("a", app(name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "live") {
			pod := showing(a.Owner.Pod, a.IP)
			pod.UID = app(name).UID
			h.pods.Add(pod)
		}
		as = append(as, a)
	}
	return as
}

// contentsOf returns a store's snapshot.
func contentsOf(t *testing.T, m *backendtest.Memory) map[string]string {
	t.Helper()
	snapshot, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// outcomes returns the outcomes of the entries, by key.
func outcomes(r report.Report) map[string]report.Fate {
	all := make(map[string]report.Fate)
	for _, e := range r.Entries {
		all[e.Key] = e.Outcome
	}
	return all
}

// requests collects the requests to a store.
func requests(m *backendtest.Memory) *[]string {
	var asked []string
	m.OnRequest(func(request string) error {
		asked = append(asked, request)
		return nil
	})
	return &asked
}

// Promise 1, 7. testdata/report.json has what the report says of such a run.
func TestRunReleasesOrphans(t *testing.T) {
	h, m := memoryHarness(t, "live-1", "gone-1", "live-2", "gone-2")
	got := h.run(t)

	equal(t, "summary", got.Summary, report.Counts{Entries: 4, InUse: 2, Planned: 2, Released: 2})
	equal(t, "outcomes", outcomes(got), map[string]report.Fate{"1": report.Kept, "2": report.Released, "3": report.Kept, "4": report.Released})
	left := contentsOf(t, m)
	if len(left) != 2 || left["a/1"] == "" || left["a/3"] == "" {
		t.Errorf("left are %v, want those of the living", left)
	}
	equal(t, "released by the next run", h.run(t).Summary, report.Counts{Entries: 2, InUse: 2})
}

// Promise 3. A pod that is created while the stores are listed is in the census.
func TestAllocationsAreListedBeforePods(t *testing.T) {
	first, second := backendtest.NewMemory("first"), backendtest.NewMemory("second")
	h := newHarness(first.Backend(), second.Backend())
	h.addPods(t, first, "live-1")
	var order calls
	first.OnRequest(order.of("first: "))
	second.OnRequest(order.of("second: "))
	h.pods.OnCall(order.of(""))
	h.run(t)
	equal(t, "order", order.inPhases(), []string{"first: list", "second: list", "list nodes", "list pods", "list statefulsets", "list virtual machines"})
}

// Promise 5.
func TestDryRunWritesNothing(t *testing.T) {
	m, two := backendtest.NewMemory("memory"), backendtest.NewTwoStep("two-step")
	h := newHarness(m.Backend(), two.Backend())
	lock := heldLock().attach(h)
	h.addPods(t, m, "live-1", "gone-1", "gone-2")
	h.addPods(t, two, "live-1", "gone-3")
	before, beforeTwo := contentsOf(t, m), contentsOf(t, two)
	asked, askedTwo := requests(m), requests(two)
	h.policy.DryRun, h.policy.GracePeriod = new(true), &policy.Duration{Duration: 1}
	suspected := h.run(t)
	h.policy.GracePeriod = &policy.Duration{}
	planned := h.run(t)

	equal(t, "store", contentsOf(t, m), before)
	equal(t, "other store", contentsOf(t, two), beforeTwo)
	equal(t, "requests", append(*asked, *askedTwo...), []string{"list", "list", "list", "list"})
	equal(t, "writes of the ledger", h.ledgers.saves, 0)
	equal(t, "lock", lock.calls, nil)
	for _, call := range h.pods.Calls() {
		if strings.HasPrefix(call, "get") {
			t.Errorf("%s: a dry run confirms nothing", call)
		}
	}
	equal(t, "suspected", suspected.Summary, report.Counts{Entries: 5, InUse: 2, Suspected: 3})
	equal(t, "planned", planned.Summary, report.Counts{Entries: 5, InUse: 2, Planned: 3})
	equal(t, "outcomes", outcomes(planned), map[string]report.Fate{
		"1": report.Kept, "2": report.Planned, "3": report.Planned,
		"10.0.0.1": report.Kept, "10.0.0.2": report.Planned,
	})
	equal(t, "allocated afterwards", planned.Pools[0].AllocatedAfter, 1)
	equal(t, "dry run", planned.Run.DryRun, true)
}

// Promise 5, 9. A run that may release remembers that it was refused.
func TestRefusedLimitReleasesNothing(t *testing.T) {
	for dryRun, ledger := range map[bool]string{false: `{"seen":{}}`, true: ""} {
		h, m := memoryHarness(t, "live-1", "gone-1", "gone-2")
		before := contentsOf(t, m)
		h.policy.Limits.MaxReleases, h.policy.DryRun = new(1), &dryRun
		rep, err := reaper.Run(t.Context(), h.options())
		equal(t, "limit", limitError(t, err).Refusals[0].Limit, "limits.maxReleases")
		equal(t, "store", contentsOf(t, m), before)
		equal(t, "ledger", h.ledgers.text(t), ledger)
		equal(t, "summary", rep.Summary, report.Counts{Entries: 3, InUse: 1, Planned: 2})
		equal(t, "allocated afterwards", rep.Pools[0].AllocatedAfter, 3)
		equal(t, "outcomes", outcomes(rep), map[string]report.Fate{"1": report.Kept, "2": report.Refused, "3": report.Refused})
	}
}

// Promise 1, 7. A limit that is ignored is reported, and lifts no other limit.
func TestOnlyTheNamedLimitIsIgnored(t *testing.T) {
	const noPods = "the cluster has no pods: the plan would release 2 of 2 allocations"
	const releases = "limits.maxReleases: the plan would release 2 of 2 allocations, more than the allowed 1"
	for _, tt := range []struct {
		ignored          []string
		refused, warning []string
	}{
		{nil, []string{noPods, releases}, nil},
		{[]string{"noPods"}, []string{releases}, []string{noPods}},
		{[]string{"maxReleases"}, []string{noPods}, []string{releases}},
		{[]string{"maxFraction", "maxPodDrop"}, []string{noPods, releases}, nil},
		{[]string{"maxReleases", "noPods"}, nil, []string{noPods, releases}},
	} {
		h, m := memoryHarness(t, "gone-1", "gone-2")
		h.policy.Limits.MaxReleases = new(1)
		h.change = func(o *reaper.Options) { o.IgnoreLimits = tt.ignored }
		report, err := reaper.Run(t.Context(), h.options())
		equal(t, "refused", limitError(t, err) != nil, len(tt.refused) > 0)
		equal(t, "refusals", messages(report.Result.Refused), strings.Join(tt.refused, "\n"))
		var warnings []string
		for _, message := range tt.warning {
			warnings = append(warnings, "a limit is ignored: "+message)
		}
		equal(t, "warnings", report.Warnings, warnings)
		equal(t, "allocations left", len(contentsOf(t, m)), 2-report.Summary.Released)
	}
}

// Promise 2, 7, 9.
func TestFailingCensusStopsTheRun(t *testing.T) {
	for _, call := range []string{"list pods", "list virtual machines", "list statefulsets", "list nodes", "list sandboxes"} {
		h, m := memoryHarness(t, "live-1", "gone-1")
		h.onNode = call == "list sandboxes"
		before := contentsOf(t, m)
		h.pods.OnCall(failing(errForbidden, call))
		rep, err := reaper.Run(t.Context(), h.options())
		partial, limit := (*report.PartialError)(nil), (*judge.LimitError)(nil)
		if !errors.Is(err, errForbidden) || errors.As(err, &partial) || errors.As(err, &limit) {
			t.Errorf("run: %v, want the census's error and nothing else", err)
		}
		equal(t, "store", contentsOf(t, m), before)
		equal(t, "ledger", h.ledgers.text(t), `{"seen":{}}`)
		equal(t, "summary", rep.Summary, report.Counts{Entries: 2, Held: 2})
		for _, e := range rep.Entries {
			equal(t, "reason of "+e.Key, e.Reason, judge.NoCensus)
		}
	}
}

func TestStatefulSetsAreListedOnlyWhereThePolicyNeedsThem(t *testing.T) {
	h := newHarness()
	h.policy.Protection.StatefulSets = policy.Ignore
	h.run(t)
	equal(t, "calls where they are ignored", slices.Sorted(slices.Values(h.pods.Calls())), []string{"list nodes", "list pods", "list virtual machines"})
}

func TestRunShowsItsProgress(t *testing.T) {
	h, _ := memoryHarness(t, "live-1", "gone-1")
	var lines []string
	h.change = func(o *reaper.Options) { o.Progress = func(line string) { lines = append(lines, line) } }
	h.run(t)
	equal(t, "lines", lines, []string{
		"listed 1 store", "found 1 pods", "judged 2 allocations: 1 due", "releasing in memory: 1 pool", "done",
	})
}
