package reaper_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// ready returns a node that is, and away one that does not answer.
func ready(name string) reaper.Node { return reaper.Node{Name: name, Ready: true} }
func away(name string) reaper.Node  { return reaper.Node{Name: name} }

// on returns the pod of that name as it shows addresses on a node.
func on(node, name string, rs ...reaper.Allocation) reaper.Pod {
	pod := reaper.Pod{Ref: app(name).Pod, UID: app(name).UID, Node: node}
	for _, r := range rs {
		pod.Addresses = append(pod.Addresses, r.IP)
	}
	return pod
}

// cutOff is a world over a store that names no nodes. A run saw web, which has
// 10.0.0.2, on n1; then n1 went away and web was deleted.
func cutOff(t *testing.T, m *backendtest.Memory) *world {
	t.Helper()
	w := newWorld(m.Backend())
	rs := w.fill(t, m, "live-1", "web")
	w.pods.Add(on("n1", "web", rs[1]))
	w.pods.AddNodes(ready("n1"), ready("n2"))
	w.run(t)
	w.pods.Remove(app("web").Pod)
	w.pods.AddNodes(away("n1"))
	return w
}

// unreachable is the verdict on what is on n1.
var unreachable = finding{reaper.Held, reaper.NodeUnreachable, "node n1 is not ready"}

// Promise 1, 2. The store does not tell the node: the one where the pod was last
// seen counts.
func TestNodeWhereThePodWasSeenKeeps(t *testing.T) {
	gone := finding{reaper.Orphaned, reaper.PodAbsent, ""}
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *world, *backendtest.Memory)
		want   finding
	}{
		{"the node is away", func(*testing.T, *world, *backendtest.Memory) {}, unreachable},
		{"the node is back", func(_ *testing.T, w *world, _ *backendtest.Memory) { w.pods.AddNodes(ready("n1")) }, gone},
		{"somebody vouches for the node", func(_ *testing.T, w *world, _ *backendtest.Memory) {
			w.pods.AddNodes(reaper.Node{Name: "n1", OutOfService: true})
		}, gone},
		{"the policy does not care", func(_ *testing.T, w *world, _ *backendtest.Memory) {
			w.policy.Nodes.Unreachable = policy.Release
		}, gone},
		{"runs later", func(t *testing.T, w *world, _ *backendtest.Memory) {
			for range 3 {
				w.now = w.now.Add(time.Hour)
				w.run(t)
			}
		}, unreachable},
		{"the pod came elsewhere and went before a run saw its address there", func(t *testing.T, w *world, m *backendtest.Memory) {
			w.pods.Add(on("n2", "web"))
			w.fill(t, m, "web")
			w.run(t)
			w.pods.Remove(app("web").Pod)
		}, unreachable},
		{"the pod came elsewhere, and a run saw its address there", func(t *testing.T, w *world, m *backendtest.Memory) {
			w.pods.Add(on("n2", "web", w.fill(t, m, "web")...))
			w.run(t)
			w.pods.Remove(app("web").Pod)
		}, gone},
		{"the store could not be listed in between", func(t *testing.T, w *world, m *backendtest.Memory) {
			m.OnRequest(func(string) error { return errConnection })
			w.partial(t)
			m.OnRequest(nil)
		}, unreachable},
		{"the census failed in between", func(t *testing.T, w *world, _ *backendtest.Memory) {
			w.pods.OnCall(func(string) error { return forbidden })
			if _, err := reaper.Run(t.Context(), w.options()); !errors.Is(err, forbidden) {
				t.Fatalf("run: %v, want the census's error", err)
			}
			w.pods.OnCall(nil)
		}, unreachable},
		{"the policy did not care in between, in a dry run", func(t *testing.T, w *world, _ *backendtest.Memory) {
			before := w.policy
			w.policy.Nodes.Unreachable, w.policy.DryRun = policy.Release, policy.Default().DryRun
			w.run(t)
			w.policy = before
		}, unreachable},
		{"the ledger was lost", func(_ *testing.T, w *world, _ *backendtest.Memory) { w.notes.stored = nil }, gone},
		{"the entry names another pod now", func(_ *testing.T, _ *world, m *backendtest.Memory) {
			m.Rename(reaper.Allocation{Pool: "a", Key: "2"}, other)
		}, gone},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := backendtest.NewMemory("memory")
			w := cutOff(t, m)
			tt.change(t, w, m)
			equal(t, "verdict", told(t, w.run(t), "2"), tt.want)
		})
	}
}

// Promise 7.
func TestReportTellsTheNodeWhereThePodWasSeen(t *testing.T) {
	w := cutOff(t, backendtest.NewMemory("memory"))
	report := w.run(t)
	equal(t, "node", entryOf(t, report, "2").Owner.Node, "n1")
	equal(t, "node of a pod that is nowhere yet", entryOf(t, report, "1").Owner.Node, "")
}

// A node that is gone for good is in nobody's way, and is forgotten with the entry.
func TestNodeThatIsGoneKeepsNothing(t *testing.T) {
	m := backendtest.NewMemory("memory")
	w := newWorld(m.Backend())
	rs := w.fill(t, m, "live-1", "web")
	w.pods.Add(on("n1", "web", rs[1]))
	w.pods.AddNodes(ready("n2"))
	w.run(t)
	w.pods.Remove(app("web").Pod)
	equal(t, "outcome", outcomes(w.run(t))["2"], reaper.Released)
	w.run(t)
	equal(t, "ledger", string(w.notes.stored), `{"version":1,"seen":{},"figures":{"pods":1,"nodes":1}}`)
}

// Promise 1. The pod has a new sandbox on n2, and another address; the old sandbox
// may still run on n1.
func TestSupersededEntryIsKeptByTheNodeOfTheOldSandbox(t *testing.T) {
	m := backendtest.NewForgetful("forgetful")
	w := cutOff(t, m)
	pod := on("n2", "web", w.fill(t, m, "web")...)
	pod.UID = "uid-new"
	w.pods.Add(pod)
	for range 2 {
		report := w.run(t)
		equal(t, "verdict on the old entry", told(t, report, "2"), unreachable)
		equal(t, "verdict on the new entry", told(t, report, "3").Verdict, reaper.InUse)
		equal(t, "node of the new entry", entryOf(t, report, "3").Owner.Node, "n2")
	}
	w.pods.AddNodes(ready("n1"))
	equal(t, "outcome once the node is back", outcomes(w.run(t)), map[string]reaper.Outcome{
		"1": reaper.Kept, "2": reaper.Released, "3": reaper.Kept,
	})
}

// Promise 1.
func TestWhatIsBoundToAnAddressOnANodeThatIsAwayIsKept(t *testing.T) {
	first, second := webEntry(), webEntry()
	second.Key, second.IP, second.Token, second.Owner.Pod = "2", ip2, "t2", other
	first.Group, second.Group = "b", "b"
	pod := showing(web, ip1)
	pod.Node = "n1"
	s := scene{pools: []reaper.Pool{poolOf(first, second)}, pods: []reaper.Pod{pod}, nodes: []reaper.Node{ready("n1")}}
	s.ledger = s.seen(t, noon)
	s.pods, s.nodes = nil, []reaper.Node{away("n1")}
	decisions := s.judge(t, noon)
	equal(t, "verdict", found(decisions[0]), unreachable)
	equal(t, "verdict on the bound one", decisions[1].Reason, reaper.SiblingKept)
}

// Promise 2. A name that was only guessed says nothing of a node.
func TestGuessedPodIsNotRemembered(t *testing.T) {
	r := webEntry()
	r.Inferred = true
	pod := showing(web, ip1)
	pod.Node = "n1"
	s := scene{pools: []reaper.Pool{poolOf(r)}, pods: []reaper.Pod{pod}}
	equal(t, "remembered", s.seen(t, noon).Len(), 0)
}

// What the store itself says of the node counts, and nothing else is remembered.
func TestNodeThatTheStoreNamesIsNotRemembered(t *testing.T) {
	r := webEntry()
	r.Owner.Node = "n2"
	pod := showing(web, ip1)
	pod.Node = "n1"
	s := scene{pools: []reaper.Pool{poolOf(r)}, pods: []reaper.Pod{pod}}
	equal(t, "remembered", s.seen(t, noon).Len(), 0)
	r.Owner.Node = ""
	s.pools = []reaper.Pool{poolOf(r)}
	equal(t, "remembered where it names none", s.seen(t, noon).Len(), 1)
}
