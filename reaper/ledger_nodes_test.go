package reaper_test

import (
	"errors"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// ready returns a ready node.
func ready(name string) census.Node    { return census.Node{Name: name, Ready: true} }
func notReady(name string) census.Node { return census.Node{Name: name} }

// podOn returns the pod of that name. It is on the node and shows the addresses of the
// allocations.
func podOn(node, name string, as ...ipam.Allocation) census.Pod {
	pod := census.Pod{Ref: app(name).Pod, UID: app(name).UID, Node: node}
	for _, a := range as {
		pod.Addresses = append(pod.Addresses, a.IP)
	}
	return pod
}

// lostNodeHarness returns a harness with a store that names no nodes. A run saw web,
// which has 10.0.0.2, on n1. Then n1 became unreachable, and web was deleted.
func lostNodeHarness(t *testing.T, m *backendtest.Memory) *harness {
	t.Helper()
	h := newHarness(m.Backend())
	as := h.addPods(t, m, "live-1", "web")
	h.pods.Add(podOn("n1", "web", as[1]))
	h.pods.AddNodes(ready("n1"), ready("n2"))
	h.run(t)
	h.pods.Remove(app("web").Pod)
	h.pods.AddNodes(notReady("n1"))
	return h
}

// unreachable is the decision on an allocation on n1.
var unreachable = decision{judge.Held, judge.NodeUnreachable, "node n1 is not ready"}

// unknownNode is the decision on an allocation whose node is not known.
var unknownNode = decision{judge.Held, judge.NodeUnreachable, "its node is unknown, and these are not ready: n1"}

// Promise 1, 2. The store does not name the node. The node on which the pod was last
// seen counts.
func TestNodeWhereThePodWasSeenKeeps(t *testing.T) {
	gone := decision{judge.Orphaned, judge.PodAbsent, ""}
	for _, tt := range []struct {
		name   string
		change func(*testing.T, *harness, *backendtest.Memory)
		want   decision
	}{
		{"the node is away", func(*testing.T, *harness, *backendtest.Memory) {}, unreachable},
		{"the node is back", func(_ *testing.T, h *harness, _ *backendtest.Memory) { h.pods.AddNodes(ready("n1")) }, gone},
		{"the node is out of service", func(_ *testing.T, h *harness, _ *backendtest.Memory) {
			h.pods.AddNodes(census.Node{Name: "n1", OutOfService: true})
		}, gone},
		{"the policy does not care", func(_ *testing.T, h *harness, _ *backendtest.Memory) {
			h.policy.Nodes.Unreachable = policy.Release
		}, gone},
		{"the pod came elsewhere and went before a run saw its address there", func(t *testing.T, h *harness, m *backendtest.Memory) {
			h.pods.Add(podOn("n2", "web"))
			h.addPods(t, m, "web")
			h.run(t)
			h.pods.Remove(app("web").Pod)
		}, unknownNode},
		{"the pod came elsewhere, and a run saw its address there", func(t *testing.T, h *harness, m *backendtest.Memory) {
			h.pods.Add(podOn("n2", "web", h.addPods(t, m, "web")...))
			h.run(t)
			h.pods.Remove(app("web").Pod)
		}, gone},
		{"the census failed in between", func(t *testing.T, h *harness, _ *backendtest.Memory) {
			h.pods.OnCall(func(string) error { return errForbidden })
			if _, err := reaper.Run(t.Context(), h.options()); !errors.Is(err, errForbidden) {
				t.Fatalf("run: %v, want the census's error", err)
			}
			h.pods.OnCall(nil)
		}, unreachable},
		{"the policy did not care in between, in a dry run", func(t *testing.T, h *harness, _ *backendtest.Memory) {
			before := h.policy
			h.policy.Nodes.Unreachable, h.policy.DryRun = policy.Release, policy.Default().DryRun
			h.run(t)
			h.policy = before
		}, unreachable},
		{"the ledger was lost", func(_ *testing.T, h *harness, _ *backendtest.Memory) { h.ledgers.stored = nil }, unknownNode},
		{"the allocation names another pod now", func(_ *testing.T, _ *harness, m *backendtest.Memory) {
			m.Rename(ipam.Allocation{Pool: "a", Key: "2"}, other)
		}, unknownNode},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := backendtest.NewMemory("memory")
			h := lostNodeHarness(t, m)
			tt.change(t, h, m)
			equal(t, "verdict", reported(t, h.run(t), "2"), tt.want)
		})
	}
}

// A node that does not exist any more keeps nothing. The ledger loses it with the
// allocation.
func TestNodeThatIsGoneKeepsNothing(t *testing.T) {
	h, m := memoryHarness(t)
	as := h.addPods(t, m, "live-1", "web")
	h.pods.Add(podOn("n1", "web", as[1]))
	h.pods.AddNodes(ready("n2"))
	h.run(t)
	h.pods.Remove(app("web").Pod)
	equal(t, "outcome", outcomes(h.run(t))["2"], report.Released)
	h.run(t)
	equal(t, "ledger", h.ledgers.text(t), `{"seen":{},"figures":{"pods":1,"nodes":1}}`)
}

// Promise 1. The pod has a new sandbox on n2, and another address. The old sandbox may
// still run on n1.
func TestReplacedSandboxIsKeptByItsNode(t *testing.T) {
	m := backendtest.NewForgetful("forgetful")
	h := lostNodeHarness(t, m)
	pod := podOn("n2", "web", h.addPods(t, m, "web")...)
	pod.UID = "uid-new"
	h.pods.Add(pod)
	for range 2 {
		report := h.run(t)
		equal(t, "decision on the old allocation", reported(t, report, "2"), unreachable)
		equal(t, "verdict on the new allocation", reported(t, report, "3").Verdict, judge.InUse)
		equal(t, "node of the new allocation", entryOf(t, report, "3").Owner.Node, "n2")
	}
	h.pods.AddNodes(ready("n1"))
	equal(t, "outcome once the node is back", outcomes(h.run(t)), map[string]report.Fate{
		"1": report.Kept, "2": report.Released, "3": report.Kept,
	})
}

// Promise 1.
func TestSiblingOfAnAddressOnAnUnreachableNodeIsKept(t *testing.T) {
	first, second := webAllocation(), webAllocation()
	second.Key, second.IP, second.Token, second.Owner.Pod = "2", ip2, "t2", other
	first.Group, second.Group = "b", "b"
	pod := showing(web, ip1)
	pod.Node = "n1"
	s := situation{pools: []ipam.Pool{poolOf(first, second)}, pods: []census.Pod{pod}, nodes: []census.Node{ready("n1")}}
	s.ledger = s.seen(t, noon)
	s.pods, s.nodes = nil, []census.Node{notReady("n1")}
	decisions := s.judge(t, noon)
	equal(t, "verdict", decisionOf(decisions[0]), unreachable)
	equal(t, "verdict on its sibling", decisionOf(decisions[1]), unknownNode)
}

// The ledger keeps no node that the store names.
func TestNodeThatTheStoreNamesIsNotRemembered(t *testing.T) {
	for store, remembered := range map[string]int{"n1": 0, "n2": 1, "": 1} {
		a := webAllocation()
		a.Owner.Node = store
		pod := showing(web, ip1)
		pod.Node = "n1"
		s := situation{pools: []ipam.Pool{poolOf(a)}, pods: []census.Pod{pod}}
		equal(t, "remembered of a pod on n1, where the store names "+store, s.seen(t, noon).Len(), remembered)
	}
}
