package reaper_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// selecting makes the runs of the harness select.
func (h *harness) selecting(s judge.Selection) *harness {
	h.change = func(o *reaper.Options) { o.Selection = s }
	return h
}

// onePod selects the allocations of one pod of the tests of runs.
func onePod(name string) judge.Selection { return judge.Selection{Pods: []string{"default/" + name}} }

func TestSelection(t *testing.T) {
	a := webAllocation()
	a.Owner.Node = "n1"
	pool := poolOf(a)
	pool.Name = "kube-system/10.0.0.0-24"
	names := func(list ...string) []string { return list }
	for _, tt := range []struct {
		selection judge.Selection
		want      bool
		text      string
	}{
		{judge.Selection{}, true, ""},
		{judge.Selection{Namespaces: names("default")}, true, "namespace default"},
		{judge.Selection{Namespaces: names("other", "default")}, true, "namespace other or default"},
		{judge.Selection{Pods: names("default/web")}, true, "pod default/web"},
		{judge.Selection{Pods: names("other/web")}, false, "pod other/web"},
		{judge.Selection{Nodes: names("n1")}, true, "node n1"},
		{judge.Selection{Backends: names("fixed")}, true, "backend fixed"},
		{judge.Selection{Pools: names("10.0.0.0-24")}, true, "pool 10.0.0.0-24"},
		{judge.Selection{Namespaces: names("default"), Nodes: names("n2")}, false, "namespace default, node n2"},
		{judge.Selection{Namespaces: names("default"), Nodes: names("n1")}, true, "namespace default, node n1"},
	} {
		h := newHarness(fixedStore{pool}).selecting(tt.selection)
		h.pods.AddNodes(census.Node{Name: "n1", Ready: true}, census.Node{Name: "n2", Ready: true})
		h.policy.DryRun = new(true)
		h.pods.Add(census.Pod{Ref: other})
		equal(t, "entries of "+tt.text, len(h.run(t).Entries) == 1, tt.want)
		equal(t, "text", tt.selection.String(), tt.text)
		equal(t, "everything", tt.selection.Everything(), tt.text == "")
	}
}

// The name of a Calico block has a slash: its length is not its name.
func TestRangeIsTheWholeNameOfAPool(t *testing.T) {
	block := poolOf(webAllocation())
	block.Name = "10.0.0.0/29"
	for name, want := range map[string]bool{"10.0.0.0/29": true, "29": false} {
		h := newHarness(fixedStore{block}).selecting(judge.Selection{Pools: []string{name}})
		h.pods.Add(census.Pod{Ref: other})
		_, err := reaper.Run(t.Context(), h.options())
		equal(t, "found "+name, err == nil, want)
	}
}

// Promise 7. The others stay as they are, and the figures of the pool stay whole.
func TestOnlyWhatIsSelectedIsReleasedAndReported(t *testing.T) {
	m := backendtest.NewMemory("memory")
	h := newHarness(m.Backend()).selecting(onePod("gone-1"))
	h.addPods(t, m, "live-1", "gone-1", "gone-2")
	rep := h.run(t)
	equal(t, "outcomes", outcomes(rep), map[string]report.Outcome{"2": report.Released})
	equal(t, "summary", rep.Summary, report.Counts{Entries: 1, Planned: 1, Released: 1})
	equal(t, "counts of the backend", rep.Backends[0].Counts, rep.Summary)
	equal(t, "bottom line", rep.BottomLine(), "1 leaked address of pod default/gone-1: 1 released, 0 still due, 0 waiting, 0 held")
	equal(t, "selection", rep.Run.Selection, onePod("gone-1"))
	equal(t, "pool before and after", [2]int{rep.Pools[0].AllocatedBefore, rep.Pools[0].AllocatedAfter}, [2]int{3, 2})
	equal(t, "leaked in the pool", rep.Pools[0].Leaked, 1)
	equal(t, "records", len(h.journal.Read().Records), 1)
	left := contentsOf(t, m)
	if len(left) != 2 || left["a/1"] == "" || left["a/3"] == "" {
		t.Errorf("left are %v, want those that are not selected", left)
	}
}

func TestLimitsCountWhatIsSelected(t *testing.T) {
	live := func(n int) []string { return repeated("live", n) }
	gone := func(n int) []string { return repeated("gone", n) }
	for _, tt := range []struct {
		name         string
		chosen, rest []string // pods
		limits       func(*policy.Limits)
		refused      bool
	}{
		{"more than allowed", gone(3), live(9), maxReleases(2), true},
		{"more than the fraction of all, not of the selected", append(live(20), gone(10)...), gone(60), nil, false},
		{"more than the fraction of the selected, not of all", append(live(5), gone(15)...), live(60), nil, true},
		{"few of which all leaked, while most live", gone(3), live(60), nil, false},
		{"few of which all leaked, as most of all did", gone(3), append(gone(60), live(9)...), nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := backendtest.NewMemory("memory")
			h := newHarness(m.Backend()).selecting(judge.Selection{Pools: []string{"chosen"}})
			h.policy.Limits = policy.Default().Limits
			if tt.limits != nil {
				h.policy.Limits.MaxFraction = new(1.0)
				tt.limits(&h.policy.Limits)
			}
			h.pods.Add(census.Pod{Ref: other})
			for pool, names := range map[string][]string{"chosen": tt.chosen, "rest": tt.rest} {
				for _, name := range names {
					a, err := m.Reserve(pool, app(pool+"-"+name))
					if err != nil {
						t.Fatal(err)
					}
					if strings.HasPrefix(name, "live") {
						h.pods.Add(census.Pod{Ref: a.Owner.Pod, UID: a.Owner.UID})
					}
				}
			}
			report, err := reaper.Run(t.Context(), h.options())
			equal(t, "refused", limitError(t, err) != nil, tt.refused)
			equal(t, "refusals of the report", len(report.Result.Refused) > 0, tt.refused)
			equal(t, "entries", report.Summary.Entries, len(tt.chosen))
		})
	}
}

// repeated returns n names with this beginning.
func repeated(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = prefix + strings.Repeat("x", i)
	}
	return names
}

// A mistake in a name must not read as "nothing leaked".
func TestNamesOfTheSelectionThatDoNotExist(t *testing.T) {
	for _, tt := range []struct {
		name      string
		selection judge.Selection
		wrong     string // the error; empty if there is none
		warning   string
	}{
		{"a pool", judge.Selection{Pools: []string{"a", "b"}}, "the selection names what does not exist: pool b", ""},
		{"a node", judge.Selection{Nodes: []string{"n1", "n2"}}, "the selection names what does not exist: node n2", ""},
		{"a namespace", judge.Selection{Namespaces: []string{"shpo"}}, "", "nothing was found of the selected namespace shpo"},
		{"a namespace with a pod", judge.Selection{Namespaces: []string{"kube-system"}}, "", ""},
		{"a pod", onePod("gone-9"), "", "nothing was found of the selected pod default/gone-9"},
		{"a backend", judge.Selection{Backends: []string{"calico"}}, "", "nothing was found of the selected backend calico"},
	} {
		for _, inspects := range []bool{false, true} {
			m := backendtest.NewMemory("memory")
			h := newHarness(m.Backend()).selecting(tt.selection)
			h.addPods(t, m, "live-1", "gone-1")
			h.pods.Add(census.Pod{Ref: ipam.PodRef{Namespace: "kube-system", Name: "dns"}})
			h.pods.AddNodes(census.Node{Name: "n1", Ready: true})
			before := contentsOf(t, m)
			report, err := reaper.Run(t.Context(), h.options())
			if inspects {
				report, err = reaper.Inspect(t.Context(), h.options())
			}
			var mistake *ipam.InputError
			if errors.As(err, &mistake) != (tt.wrong != "") || err != nil && err.Error() != tt.wrong {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.wrong)
			}
			equal(t, "warning of "+tt.name, strings.Contains(strings.Join(report.Warnings, "\n"), tt.warning), true)
			equal(t, "store after "+tt.name, contentsOf(t, m), before)
			switch {
			case len(tt.selection.Backends) > 0:
				equal(t, "bottom line", report.BottomLine(), "unknown how much is leaked: no store was listed")
			case err == nil:
				equal(t, "bottom line", report.BottomLine(), "no listed allocation matches "+tt.selection.String())
			default:
				equal(t, "writes of the ledger", h.ledgers.saves, 0)
			}
		}
	}
}

// A pool of a store that could not be listed may exist.
func TestPoolOfAFailedStoreIsNotAMistake(t *testing.T) {
	m, failing := backendtest.NewMemory("memory"), backendtest.NewMemory("failing")
	h := newHarness(m.Backend(), failing.Backend()).selecting(judge.Selection{Pools: []string{"b"}})
	h.addPods(t, m, "live-1")
	failing.OnRequest(func(string) error { return errForbidden })
	report, _ := h.partial(t)
	equal(t, "bottom line", report.BottomLine(), "no listed allocation matches pool b; unknown in failing")
	equal(t, "status of the failed store", strings.HasPrefix(statuses(report)["failing"], "failed: "), true)
}

// Promise 1. With any selection, a run releases only what a run without one would release,
// a whole group or nothing of it, and remembers the same.
func TestAnySelectionReleasesAPartOfThePlan(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := backendtest.NewHandled("handled")
		m.SetClock(func() time.Time { return noon.Add(-time.Hour) })
		pods, pools := &backendtest.Pods{}, make(map[string]bool)
		pods.Add(census.Pod{Ref: other})
		for _, name := range repeated("p", rapid.IntRange(1, 6).Draw(rt, "pods")) {
			owner := app(name)
			owner.Pod.Namespace = rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "namespace")
			for range rapid.IntRange(1, 3).Draw(rt, "addresses") {
				pool := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "pool")
				if _, err := m.Reserve(pool, owner); err != nil {
					rt.Fatal(err)
				}
				pools[pool] = true
			}
			if rapid.Bool().Draw(rt, "lives") {
				pods.Add(census.Pod{Ref: owner.Pod, UID: owner.UID})
			}
		}
		some := func(label string, names ...string) []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID).Draw(rt, label)
		}
		plan := func(s judge.Selection) (planned map[string]bool, ledger string) {
			h := newHarness(m.Backend()).selecting(s)
			h.pods, h.policy.DryRun = pods, new(true)
			h.policy.Limits.MaxFraction = new(1.0)
			o := h.options()
			o.Remember = true
			rep, err := reaper.Run(rt.Context(), o)
			if err != nil {
				rt.Fatal(err)
			}
			planned = make(map[string]bool)
			for _, e := range rep.Entries {
				if e.Outcome == report.Planned {
					planned[e.Key+" "+e.IP] = true
					planned["sandbox "+e.Owner.Sandbox] = true
				}
			}
			return planned, h.ledgers.text(t)
		}
		all, remembered := plan(judge.Selection{})
		chosen, ledger := plan(judge.Selection{Namespaces: some("namespaces", "x", "y"), Pools: some("pools", slices.Sorted(maps.Keys(pools))...)})
		if diff := cmp.Diff(remembered, ledger); diff != "" {
			rt.Errorf("ledger (-without +with the selection):\n%s", diff)
		}
		for what := range chosen {
			if !all[what] {
				rt.Errorf("%s is planned only with the selection", what)
			}
		}
		for _, pool := range inventory(t, m.Backend()).Listings[0].Pools {
			for _, a := range pool.Allocations {
				if id := a.Key + " " + a.IP.String(); all[id] && chosen["sandbox "+a.Owner.Sandbox] && !chosen[id] {
					rt.Errorf("%s stays, and a sibling of it is planned", id)
				}
			}
		}
	})
}

// Promise 1, 2. A selection does not make a doubtful census believed.
func TestSelectionDoesNotMakeACensusBelieved(t *testing.T) {
	h, m := afterDrop(t)
	before := contentsOf(t, m)
	_, err := reaper.Run(t.Context(), h.selecting(onePod("live-2")).options())
	equal(t, "limit", limitError(t, err).Refusals[0].Limit, "limits.maxPodDrop")
	equal(t, "store", contentsOf(t, m), before)
}
