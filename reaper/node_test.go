package reaper_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// Promise 1, 2. A node that does not answer may still run the sandbox, although
// its pod was deleted.
func TestNodeThatIsNotReadyKeeps(t *testing.T) {
	absent := finding{reaper.Suspected, reaper.PodAbsent, ""}
	held := finding{reaper.Held, reaper.NodeUnreachable, "node n1 is not ready"}
	for _, tt := range []struct {
		name  string
		owner string // its node
		nodes []reaper.Node
		want  finding
	}{
		{"ready", "n1", []reaper.Node{{Name: "n1", Ready: true}}, absent},
		{"not ready", "n1", []reaper.Node{{Name: "n1"}}, held},
		{"not ready, beside others", "n1", []reaper.Node{{Name: "n0", Ready: true}, {Name: "n1"}, {Name: "n2", Ready: true}}, held},
		{"not ready, and out of service", "n1", []reaper.Node{{Name: "n1", OutOfService: true}}, absent},
		{"ready, and out of service", "n1", []reaper.Node{{Name: "n1", Ready: true, OutOfService: true}}, absent},
		{"gone", "n1", []reaper.Node{{Name: "n2"}}, absent},
		{"gone, as all of them", "n1", nil, absent},
		{"not named", "", []reaper.Node{{Name: "n1"}}, absent},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := webEntry()
			r.Owner.Node = tt.owner
			for d, want := range map[policy.Disposition]finding{
				policy.Hold: tt.want, policy.Release: absent, "": tt.want, "nonsense": tt.want,
			} {
				s := scene{pools: []reaper.Pool{poolOf(r)}, nodes: tt.nodes}
				s.policy = func(p *policy.Policy) { p.Nodes.Unreachable = d }
				equal(t, "verdict under "+string(d), found(s.judge(t, noon)[0]), want)
			}
		})
	}
}

// Promise 1, 2. Whatever else makes an entry ownerless; and what has an owner, or
// is held, says so as ever.
func TestNodeThatIsNotReadyKeepsWhateverIsOwnerless(t *testing.T) {
	held := finding{reaper.Held, reaper.NodeUnreachable, "node n1 is not ready"}
	for _, tt := range []struct {
		name  string
		entry func(*reaper.Allocation)
		pods  []reaper.Pod
		want  finding
	}{
		{"PodAbsent", func(*reaper.Allocation) {}, nil, held},
		{"PodAbsent of a guessed pod", func(r *reaper.Allocation) { r.Inferred = true }, nil, held},
		{"PodReplaced", func(r *reaper.Allocation) { r.Owner.UID = "old" }, []reaper.Pod{{Ref: web, UID: "new"}}, held},
		{"PodFinished", func(*reaper.Allocation) {}, []reaper.Pod{{Ref: web, Finished: true}}, held},
		{"SandboxReplaced", func(r *reaper.Allocation) { r.SandboxOwned = true },
			[]reaper.Pod{{Ref: web, Sandbox: "s2", Addresses: []netip.Addr{ip2}}}, held},
		{"SandboxAbsent", func(r *reaper.Allocation) { r.Owner.Pod = reaper.PodRef{} }, nil, held},
		{"EmptyHandle", func(r *reaper.Allocation) { r.EmptyHandle = true }, nil, held},
		{"interrupted", func(r *reaper.Allocation) { r.Interrupted = true }, nil, held},
		{"in use", func(*reaper.Allocation) {}, []reaper.Pod{showing(web, ip1)}, finding{reaper.InUse, reaper.PodPresent, ""}},
		{"not a pod's", func(r *reaper.Allocation) { r.Foreign = "a tunnel" }, nil, finding{reaper.Held, reaper.NotPodOwned, "a tunnel"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := webEntry()
			r.Owner.Node = "n1"
			tt.entry(&r)
			s := scene{pools: []reaper.Pool{poolOf(r)}, pods: tt.pods, nodes: []reaper.Node{{Name: "n1"}}}
			s.policy = func(p *policy.Policy) {
				releaseAll(p)
				p.Nodes.Unreachable = policy.Hold
			}
			equal(t, "verdict", found(s.judge(t, noon)[0]), tt.want)
		})
	}
}

// Promise 1. Grace begins when the node is back: its kubelet has to end what it
// finds running first.
func TestGraceBeginsOnceTheNodeIsBack(t *testing.T) {
	r := webEntry()
	r.Owner.Node = "n1"
	away := scene{pools: []reaper.Pool{poolOf(r)}, nodes: []reaper.Node{{Name: "n1"}}}
	back := away
	back.nodes = []reaper.Node{{Name: "n1", Ready: true}}
	back.ledger = away.seen(t, noon)
	equal(t, "remembered while it was away", back.ledger.Len(), 0)
	grace := policy.Default().GracePeriod.Duration
	equal(t, "standing", back.judge(t, noon.Add(2*grace))[0].Verdict, reaper.Suspected)
}

// Nodes are listed unless no verdict rests on them.
func TestNodesAreListedOnlyWhereThePolicyNeedsThem(t *testing.T) {
	named := webEntry()
	named.Owner.Node = "n1"
	pods, both := []string{"list pods", "list statefulsets"}, []string{"list pods", "list statefulsets", "list nodes"}
	for _, tt := range []struct {
		name        string
		store       fixedStore
		unreachable policy.Disposition
		want        []string
	}{
		{"no reservation", nil, policy.Hold, both},
		{"none names a node", fixedStore{poolOf(webEntry())}, policy.Hold, both},
		{"one names a node", fixedStore{poolOf(webEntry()), poolOf(webEntry(), named)}, policy.Hold, both},
		{"one names a node, and the policy does not say", fixedStore{poolOf(named)}, "", both},
		{"one names a node, and the policy does not care", fixedStore{poolOf(named)}, policy.Release, pods},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(tt.store)
			w.policy.Nodes.Unreachable = tt.unreachable
			dryRun := true
			w.policy.DryRun = &dryRun
			w.pods.Add(reaper.Pod{Ref: other})
			w.run(t)
			equal(t, "calls", w.pods.Calls(), tt.want)
		})
	}
}

// Promise 2, 9. A census without the nodes is none.
func TestFailingListOfNodesStopsTheRunBeforeItWrites(t *testing.T) {
	m := backendtest.NewMemory("memory")
	w := newWorld(m.Backend())
	owner := app("gone-1")
	owner.Node = "n1"
	if _, err := m.Reserve("a", owner); err != nil {
		t.Fatal(err)
	}
	w.pods.Add(reaper.Pod{Ref: other})
	before := contentsOf(t, m)
	w.pods.OnCall(func(call string) error {
		if call == "list nodes" {
			return forbidden
		}
		return nil
	})
	report, err := reaper.Run(t.Context(), w.options())
	if partial := (*reaper.PartialError)(nil); !errors.Is(err, forbidden) || errors.As(err, &partial) {
		t.Errorf("run: %v, want the census's error and nothing else", err)
	}
	equal(t, "store", contentsOf(t, m), before)
	equal(t, "writes of the ledger", w.notes.saves, 0)
	equal(t, "reason", report.Entries[0].Reason, reaper.NoCensus)

	w.pods.OnCall(nil)
	equal(t, "released once they are listed", w.run(t).Summary.Released, 1)
}

// Promise 1, 4. The second look, whichever way, judges by the nodes of the first.
func TestConfirmRemembersTheNodes(t *testing.T) {
	for _, due := range []int{1, 1000} {
		r := entries(1)[0]
		r.Owner.Node = "n1"
		h := newHearing(t, &backendtest.Pods{}, r)
		h.census = reaper.NewCensus(noon, nil, nil, reaper.Node{Name: "n1"})
		h.policy.Nodes.Unreachable = policy.Hold
		ws, errs := h.confirmer(due).Confirm(t.Context(), h.orphans)
		refused(t, ws[0], errs[0], reaper.ErrKept)
	}
}
