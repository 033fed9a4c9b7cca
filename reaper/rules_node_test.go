package reaper_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 1, 2. A node that is not ready may still run the sandbox, although its pod
// was deleted.
func TestNodeThatIsNotReadyKeeps(t *testing.T) {
	absent := decision{reaper.Suspected, reaper.PodAbsent, ""}
	held := decision{reaper.Held, reaper.NodeUnreachable, "node n1 is not ready"}
	for _, tt := range []struct {
		name  string
		owner string // its node
		nodes []reaper.Node
		want  decision
	}{
		{"ready", "n1", []reaper.Node{{Name: "n1", Ready: true}}, absent},
		{"not ready", "n1", []reaper.Node{{Name: "n1"}}, held},
		{"not ready, beside others", "n1", []reaper.Node{{Name: "n0", Ready: true}, {Name: "n1"}, {Name: "n2", Ready: true}}, held},
		{"not ready, and out of service", "n1", []reaper.Node{{Name: "n1", OutOfService: true}}, absent},
		{"ready, and out of service", "n1", []reaper.Node{{Name: "n1", Ready: true, OutOfService: true}}, absent},
		{"gone", "n1", []reaper.Node{{Name: "n2"}}, absent},
		{"gone, as all of them", "n1", nil, absent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			a.Owner.Node = tt.owner
			for d, want := range map[policy.Disposition]decision{
				policy.Hold: tt.want, policy.Release: absent, "": tt.want, "nonsense": tt.want,
			} {
				s := situation{pools: []reaper.Pool{poolOf(a)}, nodes: tt.nodes}
				s.policy = func(p *policy.Policy) { p.Nodes.Unreachable = d }
				equal(t, "verdict under "+string(d), decisionOf(s.judge(t, noon)[0]), want)
			}
		})
	}
}

// Promise 1, 2. The reason why the allocation is ownerless does not matter. An
// allocation that has an owner, or is held, keeps its own reason.
func TestNodeThatIsNotReadyKeepsEveryOwnerlessAllocation(t *testing.T) {
	held := decision{reaper.Held, reaper.NodeUnreachable, "node n1 is not ready"}
	for _, tt := range []struct {
		name  string
		entry func(*reaper.Allocation)
		pods  []reaper.Pod
		want  decision
	}{
		{"PodAbsent", func(*reaper.Allocation) {}, nil, held},
		{"PodAbsent of an inferred pod", func(a *reaper.Allocation) { a.Inferred = true }, nil, held},
		{"PodReplaced", func(a *reaper.Allocation) { a.Owner.UID = "old" }, []reaper.Pod{{Ref: web, UID: "new"}}, held},
		{"PodFinished", func(*reaper.Allocation) {}, []reaper.Pod{{Ref: web, Finished: true}}, held},
		{"SandboxReplaced", func(a *reaper.Allocation) { a.SandboxOwned, a.Created = true, noon.Add(-time.Hour) },
			[]reaper.Pod{{Ref: web, Sandbox: "s2", Addresses: []netip.Addr{ip2}}}, held},
		{"SandboxAbsent", func(a *reaper.Allocation) { a.Owner.Pod = reaper.PodRef{} }, nil, held},
		{"EmptyHandle", func(a *reaper.Allocation) { a.EmptyHandle = true }, nil, held},
		{"interrupted", func(a *reaper.Allocation) { a.Interrupted = true }, nil, held},
		{"in use", func(*reaper.Allocation) {}, []reaper.Pod{showing(web, ip1)}, decision{reaper.InUse, reaper.PodPresent, ""}},
		{"not a pod's", func(a *reaper.Allocation) { a.Foreign = "a tunnel" }, nil, decision{reaper.Held, reaper.NotPodOwned, "a tunnel"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			a.Owner.Node = "n1"
			tt.entry(&a)
			_, later, _ := sandboxSituation()
			later.Created = noon.Add(-50 * time.Minute)
			s := situation{pools: []reaper.Pool{poolOf(a, later)}, pods: tt.pods, nodes: []reaper.Node{{Name: "n1"}}}
			s.policy = func(p *policy.Policy) {
				releaseAll(p)
				p.Nodes.Unreachable = policy.Hold
			}
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), tt.want)
		})
	}
}

// Promise 1. The grace period begins when the node is back, because its kubelet first
// has to end the sandboxes that still run.
func TestGraceBeginsOnceTheNodeIsBack(t *testing.T) {
	a := webAllocation()
	a.Owner.Node = "n1"
	away := situation{pools: []reaper.Pool{poolOf(a)}, nodes: []reaper.Node{{Name: "n1"}}}
	back := away
	back.nodes = []reaper.Node{{Name: "n1", Ready: true}}
	back.ledger = away.seen(t, noon)
	equal(t, "remembered while it was away", back.ledger.Len(), 0)
	grace := policy.Default().GracePeriod.Duration
	equal(t, "verdict", back.judge(t, noon.Add(2*grace))[0].Verdict, reaper.Suspected)
}

// Promise 2, 9. If the list of nodes fails, there is no census.
func TestFailingListOfNodesStopsTheRunBeforeItWrites(t *testing.T) {
	m := backendtest.NewMemory("memory")
	h := newHarness(m.Backend())
	owner := app("gone-1")
	owner.Node = "n1"
	if _, err := m.Reserve("a", owner); err != nil {
		t.Fatal(err)
	}
	h.pods.Add(reaper.Pod{Ref: other})
	before := contentsOf(t, m)
	h.pods.OnCall(func(call string) error {
		if call == "list nodes" {
			return errForbidden
		}
		return nil
	})
	report, err := reaper.Run(t.Context(), h.options())
	if partial := (*reaper.PartialError)(nil); !errors.Is(err, errForbidden) || errors.As(err, &partial) {
		t.Errorf("run: %v, want the census's error and nothing else", err)
	}
	equal(t, "store", contentsOf(t, m), before)
	equal(t, "writes of the ledger", h.ledgers.saves, 0)
	equal(t, "reason", report.Entries[0].Reason, reaper.NoCensus)

	h.pods.OnCall(nil)
	equal(t, "released once they are listed", h.run(t).Summary.Released, 1)
}

// Promise 1, 4. The second look uses the nodes of the first, whether it lists all pods
// or reads one.
func TestConfirmRemembersTheNodes(t *testing.T) {
	for _, due := range []int{1, 1000} {
		a := allocations(1)[0]
		a.Owner.Node = "n1"
		look := newSecondLook(t, &backendtest.Pods{}, a)
		look.census = reaper.NewCensus(noon, nil, nil, reaper.Node{Name: "n1"})
		look.policy.Nodes.Unreachable = policy.Hold
		ws, errs := look.confirmer(due).Confirm(t.Context(), look.orphans)
		refused(t, ws[0], errs[0], reaper.ErrKept)
	}
}
