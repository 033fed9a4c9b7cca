package reaper_test

import (
	"context"
	"errors"
	"maps"
	"net/netip"
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

func butNamespace(name string) judge.Selection {
	return judge.Selection{ExcludedNamespaces: []string{name}}
}

// Promise 7. The others stay as they are, and the figures of the pool stay whole.
func TestOnlyWhatIsSelectedIsReleasedAndReported(t *testing.T) {
	m := backendtest.NewMemory("memory")
	h := newHarness(m.Backend()).selecting(onePod("gone-1"))
	h.addPods(t, m, "live-1", "gone-1", "gone-2")
	rep := h.run(t)
	equal(t, "outcomes", outcomes(rep), map[string]report.Fate{"2": report.Released})
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

// Promise 1. limits.maxFraction refuses a part of the plan exactly if it refuses the whole, so
// what is refused does not pass in parts. limits.maxReleases is for one run. The judge's tests have the
// other cases.
func TestLimitsCountTheWholeClusterForASelection(t *testing.T) {
	live := func(n int) []string { return repeated("live", n) }
	gone := func(n int) []string { return repeated("gone", n) }
	const fraction, releases = "limits.maxFraction: ", "limits.maxReleases: "
	for _, tt := range []struct {
		name         string
		chosen, rest []string // pods
		maxReleases  int
		refused      string // empty if it is not
	}{
		{"a part with more than one run may release", gone(3), append(gone(7), live(30)...), 2,
			releases + "the plan would release 3 of 40 allocations, more than the allowed 2"},
		{"most of the part leaked, while most of all live", append(live(5), gone(15)...), live(60), 0, ""},
		{"little of the part leaked, as most of all did", append(live(20), gone(10)...), gone(60), 0,
			fraction + "without the selection, the plan would release 70 of 90 allocations, more than the allowed 50 %"},
		{"nothing of the part leaked", live(3), gone(60), 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := backendtest.NewMemory("memory")
			h := newHarness(m.Backend())
			h.policy.Limits = policy.Default().Limits
			h.policy.DryRun, h.policy.Limits.MaxReleases = new(true), &tt.maxReleases
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
			_, err := reaper.Run(t.Context(), h.options())
			whole := limitError(t, err)
			for _, brief := range []bool{false, true} {
				o := h.selecting(judge.Selection{Pools: []string{"chosen"}}).options()
				o.Brief = brief
				report, err := reaper.Run(t.Context(), o)
				equal(t, "refused", limitError(t, err) != nil, tt.refused != "")
				equal(t, "refusals", messages(report.Result.Refused), tt.refused)
				equal(t, "entries", report.Summary.Entries, len(tt.chosen))
				if strings.HasPrefix(tt.refused, fraction) && whole == nil {
					t.Error("the whole is not refused")
				}
			}
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

// A mistake in a name must not read as "nothing leaked". What a store or the cluster names
// exists.
func TestNamesOfTheSelectionThatDoNotExist(t *testing.T) {
	empty := func(_ context.Context, name string) census.Presence {
		return map[bool]census.Presence{true: census.Present, false: census.Absent}[name == "empty"]
	}
	unreadable := func(context.Context, string) census.Presence { return census.Unknown }
	for _, tt := range []struct {
		name       string
		selection  judge.Selection
		namespaces func(context.Context, string) census.Presence
		wrong      string // the error; empty if there is none
		hint       string
		warning    string
	}{
		{"a pool", judge.Selection{Pools: []string{"a", "b"}}, nil, `no pool named "b"`, "did you mean a?", ""},
		{"a node", judge.Selection{Nodes: []string{"n1", "n2"}}, nil, `no node named "n2"`, "did you mean n1?", ""},
		{"a pool and a node", judge.Selection{Pools: []string{"b"}, Nodes: []string{"worker-7"}}, nil,
			`no node named "worker-7"; no pool named "b"`, "did you mean a?", ""},
		{"nothing like it", judge.Selection{Nodes: []string{"worker-7"}}, nil, `no node named "worker-7"`,
			"nothing was released; a run without a selection lists all there is", ""},
		{"a namespace", judge.Selection{Namespaces: []string{"kube-systme"}}, empty, `no namespace named "kube-systme"`, "did you mean kube-system?", ""},
		{"a namespace that is empty", judge.Selection{Namespaces: []string{"empty"}}, empty, "", "", "nothing was found of the selected namespace empty"},
		{"a namespace that may exist", judge.Selection{Namespaces: []string{"shpo"}}, unreadable, "", "", "nothing was found of the selected namespace shpo"},
		{"a namespace of another cluster's", judge.Selection{Namespaces: []string{"shpo"}}, nil, "", "", "nothing was found of the selected namespace shpo"},
		{"a namespace with a pod", judge.Selection{Namespaces: []string{"kube-system"}}, empty, "", "", ""},
		{"an excluded namespace", butNamespace("kube-systme"), empty, `no namespace named "kube-systme"`, "did you mean kube-system?", ""},
		{"an excluded namespace that may exist, and is near another", butNamespace("kube-systme"), unreadable,
			`no namespace named "kube-systme"`, "did you mean kube-system?", ""},
		{"a pod", onePod("gone-9"), nil, `no pod named "default/gone-9"`, "did you mean default/gone-1?", ""},
		{"a pod that is gone", onePod("gone-1"), nil, "", "", ""},
		{"a pod without an allocation", judge.Selection{Pods: []string{"kube-system/dns"}}, nil, "", "", ""},
		{"a backend", judge.Selection{Backends: []string{"calico"}}, nil, `no backend named "calico"`,
			"nothing was released; a run without a selection lists all there is", ""},
	} {
		for _, dryRun := range []bool{false, true} {
			m := backendtest.NewMemory("memory")
			h := newHarness(m.Backend()).selecting(tt.selection)
			h.addPods(t, m, "live-1", "gone-1")
			h.pods.Add(census.Pod{Ref: ipam.PodRef{Namespace: "kube-system", Name: "dns"}})
			h.pods.AddNodes(census.Node{Name: "n1", Ready: true})
			h.policy.DryRun = &dryRun
			before := contentsOf(t, m)
			o := h.options()
			o.HasNamespace = tt.namespaces
			report, err := reaper.Run(t.Context(), o)
			var mistake *ipam.InputError
			if errors.As(err, &mistake) != (tt.wrong != "") || err != nil && (err.Error() != tt.wrong || mistake.Hint != tt.hint) {
				t.Errorf("%s: %v (hint: %+v), want %q (hint: %s)", tt.name, err, mistake, tt.wrong, tt.hint)
			}
			equal(t, "warning of "+tt.name, strings.Contains(strings.Join(report.Warnings, "\n"), tt.warning), true)
			if tt.name == "a pod that is gone" {
				continue // it is released
			}
			equal(t, "store after "+tt.name, contentsOf(t, m), before)
			if err != nil {
				equal(t, "writes of the ledger", h.ledgers.saves, 0)
			} else {
				equal(t, "bottom line", report.BottomLine(), "no listed allocation matches "+tt.selection.String())
			}
		}
	}
}

// What is excluded stays, and the rest is released, even if it is not known whether the namespace
// exists.
func TestAllButANamespaceIsReleased(t *testing.T) {
	unreadable := func(context.Context, string) census.Presence { return census.Unknown }
	for _, tt := range []struct {
		excluded, warning string
		released          int
	}{{"default", "", 0}, {"kube-system", "", 1}, {"shop", "nothing was found of the excluded namespace shop", 1}} {
		m := backendtest.NewMemory("memory")
		h := newHarness(m.Backend()).selecting(butNamespace(tt.excluded))
		h.addPods(t, m, "live-1", "gone-1")
		h.pods.Add(census.Pod{Ref: ipam.PodRef{Namespace: "kube-system", Name: "dns"}})
		o := h.options()
		o.HasNamespace = unreadable
		report, err := reaper.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "released without "+tt.excluded, report.Summary.Released, tt.released)
		equal(t, "warning", strings.Contains(strings.Join(report.Warnings, "\n"), tt.warning), true)
	}
}

// Files are all there is, unless they have no pods. A node knows only its own pods.
func TestWhatMayExistIsNoMistake(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*reaper.Options)
		offers bool // files
		want   bool // a mistake
	}{
		{"files with pods", func(*reaper.Options) {}, true, true},
		{"files without pods", func(o *reaper.Options) { o.Cluster = nil }, true, false},
		{"a cluster", func(*reaper.Options) {}, false, true},
		{"a node", func(o *reaper.Options) { o.Node = "n1" }, false, false},
	} {
		m := backendtest.NewMemory("memory")
		h := newHarness(m.Backend())
		h.addPods(t, m, "live-1")
		o := h.options()
		if tt.offers {
			o = ofFiles(h)
		}
		o.Selection = onePod("live-2")
		tt.change(&o)
		report, err := reaper.Run(t.Context(), o)
		var mistake *ipam.InputError
		equal(t, "a mistake in "+tt.name, errors.As(err, &mistake), tt.want)
		warned := slices.Contains(report.Warnings, "nothing was found of the selected pod default/live-2")
		equal(t, "a warning in "+tt.name, warned, !tt.want)
	}
}

// What pools prints, a selection takes: names of networks, and ranges. A selected network
// without a pool is no mistake.
func TestSelectionOfANetwork(t *testing.T) {
	network := func(name, in string, pools ...string) ipam.Network {
		return ipam.Network{Name: name, Range: netip.MustParsePrefix(in), Pools: pools}
	}
	for name, want := range map[string][]string{
		"edge": {"10.0.0.1"}, "10.0.0.0/28": {"10.0.0.1"}, "10.0.0.0/16": {"10.0.0.1", "10.0.1.1"}, "b": {"10.0.1.1"}, "spare": nil, "10.9.0.0/24": nil,
	} {
		a, b := webAllocation(), webAllocation()
		b.Owner.Pod.Name, b.IP = "web-2", netip.MustParseAddr("10.0.1.1")
		first, second := poolOf(a), poolOf(b)
		first.Name, first.Range = "ns/edge-10.0.0.0-28", netip.MustParsePrefix("10.0.0.0/28")
		second.Name, second.Range = "ns/b", netip.MustParsePrefix("10.0.1.0/28")
		h := newHarness(surveyor{Backend: fixedStore{first, second}, networks: []ipam.Network{
			network("edge", "10.0.0.0/28", "ns/edge-10.0.0.0-28"), network("spare", "10.9.0.0/24"),
		}}).selecting(judge.Selection{Pools: []string{name}})
		h.policy.DryRun = new(true)
		h.pods.Add(census.Pod{Ref: other})
		rep := h.run(t)
		var got []string
		for _, e := range rep.Entries {
			got = append(got, e.IP)
		}
		equal(t, "addresses of "+name, got, want)
		equal(t, "selection", rep.Run.Selection.Pools, []string{name})
		if want == nil {
			equal(t, "networks of "+name, len(rep.Networks), 1)
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
			owner.Pod.Namespace = rapid.SampledFrom([]string{"shop", "blog"}).Draw(rt, "namespace")
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
					if slices.Contains(s.ExcludedNamespaces, e.Owner.Namespace) {
						rt.Errorf("%s is planned, and in an excluded namespace", e.IP)
					}
				}
			}
			return planned, h.ledgers.text(t)
		}
		all, remembered := plan(judge.Selection{})
		chosen, ledger := plan(judge.Selection{Namespaces: some("namespaces", "shop", "blog"), ExcludedNamespaces: some("excluded", "shop", "blog"), Pools: some("pools", slices.Sorted(maps.Keys(pools))...)})
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
