package reaper_test

import (
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// nodeUnknown is the decision on an allocation whose node no source names.
func nodeUnknown(nodes string) decision {
	return decision{reaper.Held, reaper.NodeUnreachable, "its node is not known, and not ready are: " + nodes}
}

// Promise 1, 2. The sandbox of a pod that was deleted by force may run on any node that
// is not ready.
func TestAllocationWhoseNodeIsNotKnownIsHeldWhileANodeIsUnreachable(t *testing.T) {
	absent := decision{reaper.Suspected, reaper.PodAbsent, ""}
	since := func(name string, at time.Time) reaper.Node { return reaper.Node{Name: name, Since: at, Lost: true} }
	many := []reaper.Node{notReady("g"), notReady("f"), notReady("e"), notReady("d"), notReady("c"), notReady("b"), notReady("a")}
	for _, tt := range []struct {
		name    string
		created time.Time
		nodes   []reaper.Node
		want    decision
	}{
		{"all nodes are ready", time.Time{}, []reaper.Node{ready("n1"), ready("n2")}, absent},
		{"there are no nodes", time.Time{}, nil, absent},
		{"one is not ready", time.Time{}, []reaper.Node{ready("n2"), notReady("n1")}, nodeUnknown("n1")},
		{"two are not ready", time.Time{}, []reaper.Node{notReady("n2"), notReady("n1")}, nodeUnknown("n1, n2")},
		{"many are not ready", time.Time{}, many, nodeUnknown("a, b, c, d, e and 2 more")},
		{"it is fenced", time.Time{}, []reaper.Node{{Name: "n1", OutOfService: true}}, absent},
		{"one is fenced, the other is not", time.Time{}, []reaper.Node{{Name: "n1", OutOfService: true}, notReady("n2")}, nodeUnknown("n2")},
		{"made before", noon.Add(-3 * time.Hour), []reaper.Node{since("n1", noon.Add(-2*time.Hour))}, nodeUnknown("n1")},
		{"made afterwards", noon.Add(-time.Hour), []reaper.Node{since("n1", noon.Add(-2*time.Hour))}, nodeUnknown("n1")},
		{"made at about that time", noon.Add(-2*time.Hour + time.Minute), []reaper.Node{since("n1", noon.Add(-2*time.Hour))}, nodeUnknown("n1")},
		{"made between", noon.Add(-time.Hour), []reaper.Node{since("n1", noon.Add(-2*time.Hour)), since("n2", noon.Add(-time.Minute))}, nodeUnknown("n1, n2")},
		{"made after a time that is not known", noon.Add(-time.Hour), []reaper.Node{notReady("n1")}, nodeUnknown("n1")},
		{"made after the kubelet itself said so", noon.Add(-time.Hour), []reaper.Node{{Name: "n1", Since: noon.Add(-2 * time.Hour)}}, nodeUnknown("n1")},
		{"made before the node", noon.Add(-time.Hour), []reaper.Node{{Name: "n1", Created: noon.Add(-time.Minute), Lost: true}}, absent},
		{"the node was never ready", time.Time{}, []reaper.Node{{Name: "n1", Created: noon.Add(-time.Minute), Since: noon.Add(-time.Minute)}}, absent},
		{"made in the future", noon.Add(time.Hour), []reaper.Node{since("n1", noon.Add(-2*time.Hour))}, nodeUnknown("n1")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			a.Created = tt.created
			for d, want := range map[policy.Disposition]decision{policy.Hold: tt.want, "": tt.want, policy.Release: absent} {
				s := situation{pools: []reaper.Pool{poolOf(a)}, nodes: tt.nodes, policy: func(p *policy.Policy) { p.Nodes.Unknown = d }}
				equal(t, "verdict under "+string(d), decisionOf(s.judge(t, noon)[0]), want)
			}
		})
	}
}

// A handle without an address endangers no pod.
func TestEmptyHandleDoesNotWaitForUnknownNodes(t *testing.T) {
	s := situation{pools: []reaper.Pool{poolOf(emptyHandle())}, nodes: []reaper.Node{notReady("n1")}}
	equal(t, "reason", s.judge(t, noon)[0].Reason, reaper.EmptyHandle)
}

// Promise 1. The pod of that name is on n2 without the address. The entry may be of an
// earlier pod, on a node that is not ready.
func TestNodeOfAPodThatDoesNotShowTheAddressIsNotTaken(t *testing.T) {
	older, newer, pod := supersededSituation()
	pod.Node = "n2"
	s := situation{pools: []reaper.Pool{poolOf(older, newer)}, pods: []reaper.Pod{pod}, nodes: []reaper.Node{ready("n2"), notReady("n1")}}
	decisions := s.judge(t, noon)
	equal(t, "verdict", decisionOf(decisions[0]), nodeUnknown("n1"))
	equal(t, "node of the newer", s.report(t).Entries[1].Owner.Node, "n2")
}

// twoStores judges an allocation of one store beside one of another store.
func twoStores(t *testing.T, a, b reaper.Allocation, nodes ...reaper.Node) []reaper.Decision {
	t.Helper()
	b.Key, b.IP, b.Token = "9", ip2, "t9"
	inv := inventory(t, fixedStore{poolOf(a)}, scriptedStore{"store", []step{{pool: poolOf(b)}}})
	return reaper.Judge(noon, policy.Default(), inv, reaper.NewCensus(time.Now(), []reaper.Pod{{Ref: other}}, nil, nodes...), reaper.Ledger{})
}

// Promise 1, 2. The stores have the same sandbox. What one of them knows holds for both.
func TestStoresShareWhatTheyKnowOfASandbox(t *testing.T) {
	calico := webAllocation()
	calico.SandboxOwned, calico.NeverAdopted, calico.Owner.Interface = true, true, ""
	calico.Owner.Node, calico.Created = "n1", noon.Add(-time.Hour)
	absent := decision{reaper.Suspected, reaper.PodAbsent, ""}
	for _, tt := range []struct {
		name   string
		change func(a, calico *reaper.Allocation)
		nodes  []reaper.Node
		want   decision
	}{
		{"the node is unreachable", func(_, _ *reaper.Allocation) {}, []reaper.Node{notReady("n1")}, unreachable},
		{"another node is unreachable", func(_, _ *reaper.Allocation) {}, []reaper.Node{ready("n1"), notReady("n2")}, absent},
		{"the sandbox is another one", func(a, _ *reaper.Allocation) { a.Owner.Sandbox = "s0" }, []reaper.Node{ready("n1"), notReady("n2")}, nodeUnknown("n2")},
		{"no sandbox is named", func(a, c *reaper.Allocation) { a.Owner.Sandbox, c.Owner.Sandbox = "", "" },
			[]reaper.Node{ready("n1"), notReady("n2")}, nodeUnknown("n2")},
		{"the pod is another one", func(_, c *reaper.Allocation) { c.Owner.Pod = other }, []reaper.Node{ready("n1"), notReady("n2")}, nodeUnknown("n2")},
		{"the other cannot be understood", func(_, c *reaper.Allocation) { c.Unreadable = "no JSON" },
			[]reaper.Node{ready("n1"), notReady("n2")}, nodeUnknown("n2")},
		{"they are of one group", func(a, c *reaper.Allocation) { a.Owner.Sandbox, a.Group, c.Group = "", "g", "g" }, []reaper.Node{notReady("n1")}, unreachable},
		{"it names no pod, and the other does", func(a, _ *reaper.Allocation) { a.Owner.Pod = reaper.PodRef{} }, nil, absent},
		{"it names no pod, and the other's pod exists", func(a, c *reaper.Allocation) { a.Owner.Pod, c.Owner.Pod = reaper.PodRef{}, other }, nil,
			decision{reaper.InUse, reaper.PodPresent, ""}},
		{"neither names a pod", func(a, c *reaper.Allocation) { a.Owner.Pod, c.Owner.Pod = reaper.PodRef{}, reaper.PodRef{} }, nil,
			decision{reaper.Held, reaper.OwnerUnknown, "it names a sandbox only"}},
		{"the other is young", func(_, c *reaper.Allocation) { c.Created = noon }, nil, decision{reaper.Held, reaper.TooYoung, "it is too young until 2026-03-01T12:05:00Z"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, c := webAllocation(), calico
			tt.change(&a, &c)
			equal(t, "verdict", decisionOf(twoStores(t, a, c, tt.nodes...)[0]), tt.want)
		})
	}
}

// Promise 7. The report has the node that another store names.
func TestReportHasTheNodeThatAnotherStoreNames(t *testing.T) {
	a, calico := webAllocation(), webAllocation()
	calico.Owner.Node = "n1"
	d := twoStores(t, a, calico, notReady("n1"))[0]
	equal(t, "node", d.Allocation.Owner.Node, "n1")
	equal(t, "learned", d.Allocation.NodeLearned, true)
}

// Promise 1. The node on which the ledger saw the pod proves no move: another pod of that
// name may have got the address there since.
func TestLearnedNodeProvesNoMove(t *testing.T) {
	a, pod := movedSituation()
	a.Owner.Node = ""
	neighbour := a
	neighbour.Key, neighbour.IP, neighbour.Token, neighbour.Owner.Pod, neighbour.Owner.Node = "2", ip2, "t2", other, "n2"
	neighbour.Owner.Sandbox = "s2"
	before := showing(web, ip1)
	before.Node = "n1"
	s := situation{
		pools: []reaper.Pool{poolOf(a, neighbour)}, pods: []reaper.Pod{before, showing(other, ip2)},
		nodes: []reaper.Node{ready("n1"), ready("n2")}, policy: releaseNow,
	}
	s.ledger = s.seen(t, noon)
	s.pods[0] = pod
	d := s.judge(t, noon)[0]
	equal(t, "node", s.report(t).Entries[0].Owner.Node, "n1")
	equal(t, "verdict", decisionOf(d), decision{reaper.InUse, reaper.PodPresent, ""})
}

// Promise 1. If two stores name different nodes, the one that is unreachable counts.
func TestSiblingsOnTwoNodesAreOnTheOneThatIsUnreachable(t *testing.T) {
	for _, nodes := range [][2]string{{"n1", "n2"}, {"n2", "n1"}} {
		a, first, second := webAllocation(), webAllocation(), webAllocation()
		first.Key, first.IP, first.Owner.Node = "2", ip2, nodes[0]
		second.Key, second.IP, second.Owner.Node = "3", ip2, nodes[1]
		s := situation{pools: []reaper.Pool{poolOf(a, first, second)}, nodes: []reaper.Node{notReady("n1"), ready("n2")}}
		equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), unreachable)
	}
}

// Two allocations that contradict each other share no pod.
func TestSandboxOfTwoPodsNamesNone(t *testing.T) {
	a, first, second := webAllocation(), webAllocation(), webAllocation()
	a.Owner.Pod = reaper.PodRef{}
	first.Key, first.IP = "2", ip2
	second.Key, second.Owner.Pod = "3", other
	s := situation{pools: []reaper.Pool{poolOf(a, first, second)}}
	equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), decision{reaper.Held, reaper.OwnerUnknown, "it names a sandbox only"})
}
