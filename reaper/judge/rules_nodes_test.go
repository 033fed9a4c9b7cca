package judge_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// onNode1 makes the store say that the first allocation is on n1.
var onNode1 = entry(func(a *ipam.Allocation) { a.Owner.Node = "n1" })

// Promise 1, 2. A node that is not ready may still run the sandbox, although its pod was
// deleted.
func TestNodeThatIsNotReadyKeeps(t *testing.T) {
	off := census.Node{Name: "n1", OutOfService: true}
	dispositions(t, func(p *policy.Policy, d policy.Disposition) { p.Nodes.Unreachable = d },
		either("ready", absent, absent, onNode1, nodes(ready("n1"))),
		either("not ready", unreachable, absent, onNode1, nodes(notReady("n1"))),
		either("not ready, beside others", unreachable, absent, onNode1, nodes(ready("n0"), notReady("n1"), ready("n2"))),
		either("not ready, and out of service", absent, absent, onNode1, nodes(off)),
		either("ready, and still tainted", absent, absent, onNode1, nodes(tainted(ready("n1")))),
		either("gone", absent, absent, onNode1, nodes(notReady("n2"))),
		either("gone, as all of them", absent, absent, onNode1),
	)
	// The reason why the allocation is ownerless does not matter. One that has an owner, or is
	// held, keeps its own reason.
	_, later, _ := sandboxSituation()
	later.Created = noon.Add(-50 * time.Minute)
	change := func(f func(a *ipam.Allocation)) change { return entry(f) }
	ruled := given(onNode1, nodes(notReady("n1")), holds(policy.Match{Pods: []string{"web"}}))
	if says := remediesOf(ruled.judge(t, noon)[0])[0].Says; says != "whatever becomes of its node, this holds it, too: held by rules[0]: pods web" {
		t.Errorf("the first remedy of what a rule holds, too, is %q", says)
	}
	verdicts(t, all(onNode1, beside(later), nodes(notReady("n1")), terms(releaseAll), terms(func(p *policy.Policy) { p.Nodes.Unreachable = policy.Hold })),
		of("PodAbsent", unreachable),
		of("PodReplaced", unreachable, change(func(a *ipam.Allocation) { a.Owner.UID = "old" }), pods(census.Pod{Ref: web, UID: "new"})),
		of("PodFinished", unreachable, pods(census.Pod{Ref: web, Finished: true})),
		of("SandboxReplaced", unreachable, change(func(a *ipam.Allocation) { a.Adoption, a.Created = ipam.SandboxOwned, noon.Add(-time.Hour) }),
			pods(census.Pod{Ref: web, Sandbox: "s2", Addresses: []netip.Addr{ip2}, InStatus: 1})),
		of("SandboxAbsent", unreachable, change(func(a *ipam.Allocation) { a.Owner.Pod = ipam.PodRef{} })),
		of("EmptyHandle", unreachable, change(func(a *ipam.Allocation) { a.EmptyHandle = true })),
		of("interrupted", unreachable, change(func(a *ipam.Allocation) { a.Interrupted = true })),
		of("in use", present, pods(showing(web, ip1))),
		of("not a pod's", held(judge.NotPodOwned, "a tunnel"), change(func(a *ipam.Allocation) { a.Foreign = "a tunnel" })),
		of("a rule holds it, too", held(judge.NodeUnreachable, "node n1 is not ready; also held by rules[0]: pods web"), holds(policy.Match{Pods: []string{"web"}})),
		of("its namespace is excluded, too", held(judge.NodeUnreachable, "node n1 is not ready; also namespaces.exclude has default"), excludes("default")),
	)
}

// Promise 1. The store calls a node by another name than Kubernetes does, no live pod shows that, and
// no run saw the pod. Another name adds a node to wait for. It proves nothing: not that the node is
// gone or fenced, nor that the pod of that name is on another node. The census proves which names are one.
func TestOtherNamesOfNodesAddNodesToWaitFor(t *testing.T) {
	called := func(n census.Node, names ...string) census.Node {
		n.OtherNames = names
		return n
	}
	in := func(store string, n ...census.Node) change {
		return all(entry(func(a *ipam.Allocation) { a.Owner.Node = store }), nodes(n...))
	}
	waits := held(judge.NodeUnreachable, "node n1 is not ready, and may be its node by another name")
	verdicts(t, all(),
		of("a domain", waits, in("n1.corp.example", notReady("n1"))),
		of("one of its names", waits, in("web-7", called(notReady("n1"), "other", "web-7"))),
		of("two nodes have it", waits, in("web-7", called(ready("n0"), "web-7"), called(notReady("n1"), "web-7"))),
		of("it is ready", absent, in("n1.corp.example", ready("n1"))),
		of("it is fenced", absent, in("n1.corp.example", tainted(notReady("n1")))),
		of("a node has exactly that name", absent, in("web-7", ready("web-7"), called(notReady("n1"), "web-7"), notReady("web-7.corp.example"))),
	)

	// The pod is on n1, and does not show the allocation of n1.corp.example. The store knows n1 by
	// that name, too.
	a, pod := movedSituation()
	a.Owner.Node, pod.Node = "n1.corp.example", "n1"
	neighbour := a
	neighbour.Key, neighbour.IP, neighbour.Owner.Pod, neighbour.Owner.Node, neighbour.Owner.Sandbox = "2", ip2, other, "n1", "s2"
	s := situation{pools: []ipam.Pool{poolOf(a, neighbour)}, pods: []census.Pod{pod, showing(other, ip2)}, nodes: []census.Node{ready("n1")}, policy: releaseNow}
	equal(t, "verdict where the pod may be on the node", decisionOf(s.judge(t, noon)[0]), present)
}

// Promise 1. A node that has another name in the store was cut off, and is ready again: its kubelet
// may only now learn that the pod is gone.
func TestNodeOfAnotherNameThatIsReadyAgainIsWaitedFor(t *testing.T) {
	back := ready("n1")
	back.Since = noon
	given(entry(func(a *ipam.Allocation) { a.Owner.Node = "n1.corp.example" }), nodes(back, ready("n2")), waits(0, 0)).ripens(t, 90*time.Second)
}

// Promise 7. The taint of a ready node says what is not true any more.
func TestReadyNodeWithTheTaintIsNamed(t *testing.T) {
	off := census.Node{Name: "n1", OutOfService: true}
	for name, tt := range map[string]struct {
		nodes []census.Node
		want  []string
	}{
		"no node has the taint": {[]census.Node{ready("n0"), notReady("n1")}, nil},
		"it is not ready":       {[]census.Node{ready("n0"), off}, nil},
		"two are ready": {[]census.Node{tainted(ready("n2")), off, tainted(ready("n0")), ready("n3")}, []string{
			"the taint node.kubernetes.io/out-of-service does not count on a ready node, but will as soon as the node is not ready, " +
				"even if its pods still run: n0, n2. Remove it with kubectl taint nodes NODE node.kubernetes.io/out-of-service-",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, "warnings", judge.FenceWarnings(given(nodes(tt.nodes...)).census(t)), tt.want)
		})
	}
}

// nodeUnknown is the decision on an allocation whose node no source names.
func nodeUnknown(nodes string) decision {
	return held(judge.NodeUnreachable, "its node is unknown, and these are not ready: "+nodes)
}

// Promise 1, 2. The sandbox of a pod that was deleted by force may run on any node that
// is not ready.
func TestAllocationWhoseNodeIsNotKnownIsHeldWhileANodeIsUnreachable(t *testing.T) {
	since := func(name string, at time.Duration) census.Node {
		return census.Node{Name: name, Since: noon.Add(at), Lost: true}
	}
	made := func(at time.Duration) change {
		return entry(func(a *ipam.Allocation) { a.Created = noon.Add(at) })
	}
	away := func(name, unknown string, changes ...change) choice {
		return either(name, nodeUnknown(unknown), absent, changes...)
	}
	n1, n2, off := notReady("n1"), notReady("n2"), census.Node{Name: "n1", OutOfService: true}
	lost := since("n1", -2*time.Hour)
	dispositions(t, func(p *policy.Policy, d policy.Disposition) { p.Nodes.Unknown = d },
		either("all nodes are ready", absent, absent, nodes(ready("n1"), ready("n2"))),
		either("there are no nodes", absent, absent),
		away("one is not ready", "n1", nodes(ready("n2"), n1)),
		away("two are not ready", "n1, n2", nodes(n2, n1)),
		away("many are not ready", "a, b, c, d, e and 2 more",
			nodes(notReady("g"), notReady("f"), notReady("e"), notReady("d"), notReady("c"), notReady("b"), notReady("a"))),
		either("it is fenced", absent, absent, nodes(off)),
		away("one is fenced, the other is not", "n2", nodes(off, n2)),
		away("made before", "n1", made(-3*time.Hour), nodes(lost)),
		away("made afterwards", "n1", made(-time.Hour), nodes(lost)),
		away("made at about that time", "n1", made(-2*time.Hour+time.Minute), nodes(lost)),
		away("made between", "n1, n2", made(-time.Hour), nodes(lost, since("n2", -time.Minute))),
		away("made after a time that is not known", "n1", made(-time.Hour), nodes(n1)),
		away("made after the kubelet itself said so", "n1", made(-time.Hour), nodes(census.Node{Name: "n1", Since: noon.Add(-2 * time.Hour)})),
		either("made before the node", absent, absent, made(-time.Hour), nodes(census.Node{Name: "n1", Created: noon.Add(-time.Minute), Lost: true})),
		either("the node was never ready", absent, absent, nodes(census.Node{Name: "n1", Created: noon.Add(-time.Minute), Since: noon.Add(-time.Minute)})),
		away("made in the future", "n1", made(time.Hour), nodes(lost)),

		// A handle without an address endangers no pod.
		either("an empty handle", decision{judge.Suspected, judge.EmptyHandle, ""}, decision{judge.Suspected, judge.EmptyHandle, ""},
			entry(func(a *ipam.Allocation) { *a = emptyHandle() }), nodes(n1)),
	)
}

// Promise 1. The pod of that name is on n2 without the address. The entry may be of an
// earlier pod, on a node that is not ready.
func TestNodeOfAPodThatDoesNotShowTheAddressIsNotTaken(t *testing.T) {
	older, newer, pod := supersededSituation()
	pod.Node = "n2"
	s := situation{pools: []ipam.Pool{poolOf(older, newer)}, pods: []census.Pod{pod}, nodes: []census.Node{ready("n2"), notReady("n1")}}
	equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), nodeUnknown("n1"))
	equal(t, "node of the newer", s.judge(t, noon)[1].Allocation.Owner.Node, "n2")
}

// Promise 1, 2, 7. Two stores have the same sandbox. What one of them knows holds for both, and
// the report has the node that the other store names.
func TestStoresShareWhatTheyKnowOfASandbox(t *testing.T) {
	// judged judges an allocation of one store alongside one of Calico.
	judged := func(t *testing.T, a, calico ipam.Allocation, nodes ...census.Node) judge.Decision {
		calico.Key, calico.IP, calico.Token = "9", ip2, "t9"
		inv := inventory(t, fixedStore{poolOf(a)}, namedStore{fixedStore{poolOf(calico)}, "store"})
		return judge.Judge(noon, policy.Default(), inv, census.New(time.Now(), []census.Pod{{Ref: other}}, nil, nodes...), ledger.Ledger{})[0]
	}
	calico := webAllocation()
	calico.Adoption, calico.Owner.Interface = ipam.SandboxOwned, ""
	calico.Owner.Node, calico.Created = "n1", noon.Add(-time.Hour)
	n1, n2 := []census.Node{notReady("n1")}, []census.Node{ready("n1"), notReady("n2")}
	for _, tt := range []struct {
		name   string
		change func(a, calico *ipam.Allocation)
		nodes  []census.Node
		want   decision
	}{
		{"the node is unreachable", func(_, _ *ipam.Allocation) {}, n1, unreachable},
		{"another node is unreachable", func(_, _ *ipam.Allocation) {}, n2, absent},
		{"the sandbox is another one", func(a, _ *ipam.Allocation) { a.Owner.Sandbox = "s0" }, n2, nodeUnknown("n2")},
		{"no sandbox is named", func(a, c *ipam.Allocation) { a.Owner.Sandbox, c.Owner.Sandbox = "", "" }, n2, nodeUnknown("n2")},
		{"the pod is another one", func(_, c *ipam.Allocation) { c.Owner.Pod = other }, n2, nodeUnknown("n2")},
		{"the other cannot be understood", func(_, c *ipam.Allocation) { c.Unreadable = "no JSON" }, n2, nodeUnknown("n2")},
		{"they are of one group", func(a, c *ipam.Allocation) { a.Owner.Sandbox, a.Group, c.Group = "", "g", "g" }, n1, unreachable},
		{"it names no pod, and the other does", func(a, _ *ipam.Allocation) { a.Owner.Pod = ipam.PodRef{} }, nil, absent},
		{"it names no pod, and the other's pod exists", func(a, c *ipam.Allocation) { a.Owner.Pod, c.Owner.Pod = ipam.PodRef{}, other }, nil, present},
		{"neither names a pod", func(a, c *ipam.Allocation) { a.Owner.Pod, c.Owner.Pod = ipam.PodRef{}, ipam.PodRef{} }, nil,
			held(judge.OwnerUnknown, "it names only a sandbox")},
		{"the other is young", func(_, c *ipam.Allocation) { c.Created = noon }, nil, held(judge.TooYoung, "too young to tell until 2026-03-01T12:05:00Z")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, c := webAllocation(), calico
			tt.change(&a, &c)
			equal(t, "verdict", decisionOf(judged(t, a, c, tt.nodes...)), tt.want)
		})
	}
	d := judged(t, webAllocation(), calico, n1...)
	equal(t, "node", d.Allocation.Owner.Node, "n1")
}

// Promise 1. Siblings of the sandbox that contradict each other: the node that is unreachable
// counts, and two pods are none.
func TestSiblingsThatContradictEachOther(t *testing.T) {
	sibling := func(key string, change func(*ipam.Owner)) ipam.Allocation {
		a := webAllocation()
		a.Key, a.IP = key, ip2
		change(&a.Owner)
		return a
	}
	on := func(key, node string) ipam.Allocation {
		return sibling(key, func(o *ipam.Owner) { o.Node = node })
	}
	verdicts(t, nodes(notReady("n1"), ready("n2")),
		of("on two nodes", unreachable, beside(on("2", "n1"), on("3", "n2"))),
		of("on two nodes, in the other order", unreachable, beside(on("2", "n2"), on("3", "n1"))),
		of("on two nodes, one by another name", held(judge.NodeUnreachable, "node n1 is not ready, and may be its node by another name"),
			beside(on("2", "n2"), on("3", "n1.corp.example"))),
		of("of two pods", held(judge.OwnerUnknown, "it names only a sandbox"), nodes(), entry(func(a *ipam.Allocation) { a.Owner.Pod = ipam.PodRef{} }),
			beside(on("2", ""), sibling("3", func(o *ipam.Owner) { o.Pod = other }))),
	)
}

// movedSituation returns an allocation of web on n1, and web on n2, where it hangs
// without an address.
func movedSituation() (ipam.Allocation, census.Pod) {
	a := webAllocation()
	a.Adoption = ipam.SandboxOwned
	a.Owner.Node, a.Created = "n1", noon.Add(-time.Hour)
	return a, census.Pod{Ref: web, Node: "n2", AddressUnknown: true, Starting: true}
}

// Promise 1, 2. Each case that is kept lacks one part of the proof.
func TestPodOnAnotherNodeLeavesItsAllocationOnlyWithTheProof(t *testing.T) {
	moved := decision{judge.Suspected, judge.PodMoved, "the pod is on node n2"}
	a, pod := movedSituation()
	sibling := a
	sibling.Key, sibling.IP, sibling.Token = "2", ip2, "t2"
	its := func(f func(p *census.Pod)) change { return func(s *situation) { f(&s.pods[0]) } }
	node := func(i int, n census.Node) change { return func(s *situation) { s.nodes[i] = n } }
	alsoOn := func(nodes string) change {
		return entry(func(a *ipam.Allocation) { a.Adoption, a.AlsoOn = ipam.AdoptedOnNode, nodes })
	}
	common := func(s *situation) {
		s.pools[0].Allocations = []ipam.Allocation{a, sibling}
		s.pods, s.nodes, s.policy = []census.Pod{pod}, []census.Node{ready("n1"), ready("n2")}, releaseNow
	}
	verdicts(t, common,
		of("all is proved", moved),
		of("the old node is gone, and another pod's node is known", present, node(0, ready("n3"))),
		of("the old node is fenced", decision{judge.Orphaned, judge.PodMoved, moved.Note}, node(0, census.Node{Name: "n1", OutOfService: true})),
		of("the old node is ready, and still has the taint", moved, node(0, tainted(ready("n1")))),
		of("the old node is unreachable", unreachable, node(0, notReady("n1"))),
		of("the new node is unreachable", present, node(1, notReady("n2"))),
		of("the new node is not known", present, func(s *situation) { s.nodes = s.nodes[:1] }),
		of("the pod has no node yet", present, its(func(p *census.Pod) { p.Node = "" })),
		of("the pod is on the same node", present, its(func(p *census.Pod) { p.Node = "n1" })),
		of("the store names no node", present, func(s *situation) {
			for i := range s.pools[0].Allocations {
				s.pools[0].Allocations[i].Owner.Node = ""
			}
		}),
		of("a later sandbox may adopt the allocation", present, entry(func(a *ipam.Allocation) { a.Adoption = ipam.Adoptable })),
		of("a later sandbox on the old node may adopt the allocation", moved, entry(func(a *ipam.Allocation) { a.Adoption = ipam.AdoptedOnNode })),
		of("a later sandbox on the old node may adopt the allocation, and the pod leaves out a network", present,
			entry(func(a *ipam.Allocation) { a.Adoption = ipam.AdoptedOnNode }),
			its(func(p *census.Pod) { p.AddressUnknown, p.Starting, p.LeavesOut = false, false, true })),
		of("a later sandbox on the old node may adopt the allocation, and the pod is there", present,
			entry(func(a *ipam.Allocation) { a.Adoption = ipam.AdoptedOnNode }), its(func(p *census.Pod) { p.Node = "n1" })),
		of("a later sandbox on a third node may adopt it, too", moved, alsoOn("n3")),
		of("a later sandbox of the pod may adopt it, too", present, alsoOn("n0 n2")),
		of("a later sandbox may adopt it on a node that may be the pod's by another name", present, alsoOn("n2.example.com")),
		of("the pod has ended", held(judge.PodFinished, ""), its(func(p *census.Pod) { p.Finished, p.AddressUnknown = true, false })),
		of("the pod shows the address", present, its(func(p *census.Pod) { p.Addresses = []netip.Addr{ip1} })),
		of("the pod may have an address that it does not show", present, its(func(p *census.Pod) { p.Starting = false })),
		of("the store has an address of the pod's status on the old node", present, its(func(p *census.Pod) {
			p.Addresses, p.InStatus, p.AddressUnknown, p.Starting = []netip.Addr{ip2}, 1, false, false
		})),
		of("the pod leaves out a network that never has an address", moved, its(func(p *census.Pod) { p.AddressUnknown, p.Starting, p.LeavesOut = false, false, true })),
		of("the pod claims an address that the store has on the old node", moved, its(func(p *census.Pod) { p.Addresses = []netip.Addr{ip2} })),
		of("the allocation may be of an ADD in flight", moved, entry(func(a *ipam.Allocation) { a.Created = noon.Add(-time.Minute) })),
		of("the store does not say its age", moved, entry(func(a *ipam.Allocation) { a.Created = time.Time{} })),
		of("it was made in the future", moved, entry(func(a *ipam.Allocation) { a.Created = noon.Add(time.Hour) })),
	)
	young := given(common, entry(func(a *ipam.Allocation) { a.Created = noon.Add(-time.Minute) }))
	equal(t, "due", young.judge(t, noon)[0].Due, noon.Add(3*time.Minute))

	// A policy that holds nothing for unreachable nodes still sees pods that moved.
	unheld := given(common, node(0, notReady("n1")), terms(func(p *policy.Policy) { p.Nodes.Unreachable = policy.Release }))
	unheld.ledger = unheld.seen(t, noon)
	equal(t, "verdict where unreachable nodes do not hold", unheld.judge(t, noon.Add(time.Hour))[0].Verdict, judge.Orphaned)

	// The names of Calico's nodes may differ from those of the API server. If the store knows a
	// node by the same name, they do not, even for a node that is gone.
	neighbour := sibling
	neighbour.Owner.Pod, neighbour.Owner.Node = other, "n2"
	gone := given(common, nodes(ready("n2")), pods(showing(other, ip2)))
	gone.pools[0].Allocations[1] = neighbour
	gone.ripens(t, 90*time.Second)
}

// Promise 1. The node on which the ledger saw the pod proves no move: another pod of that
// name may have got the address there since.
func TestLearnedNodeProvesNoMove(t *testing.T) {
	a, pod := movedSituation()
	a.Owner.Node = ""
	neighbour := a
	neighbour.Key, neighbour.IP, neighbour.Token = "2", ip2, "t2"
	neighbour.Owner.Pod, neighbour.Owner.Node, neighbour.Owner.Sandbox = other, "n2", "s2"
	before := showing(web, ip1)
	before.Node = "n1"
	s := situation{
		pools: []ipam.Pool{poolOf(a, neighbour)}, pods: []census.Pod{before, showing(other, ip2)},
		nodes: []census.Node{ready("n1"), ready("n2")}, policy: releaseNow,
	}
	s.ledger = s.seen(t, noon)
	s.pods[0] = pod
	equal(t, "node", s.judge(t, noon)[0].Allocation.Owner.Node, "n1")
	equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), present)
}

// starting returns a pod that hangs on the node without an address.
func starting(node string) census.Pod {
	return census.Pod{Ref: other, Node: node, AddressUnknown: true, Starting: true}
}

// A dry pool is full of pods that hang. They cannot own an allocation that was there
// before their ADD. Pods that may have an address and do not show it still hold.
func TestPodsThatHangDoNotHoldAllocationsWithoutANameForEver(t *testing.T) {
	common := all(entry(func(a *ipam.Allocation) { a.Owner.Pod = ipam.PodRef{} }), nodes(ready("n1"), census.Node{Name: "n2", OutOfService: true}),
		terms(func(p *policy.Policy) { p.Pods.Unnamed = policy.Release }), waits(0, 0))
	hidden := held(judge.OwnerUnknown, "it names only a sandbox, and not every pod shows its addresses")
	verdicts(t, common,
		of("no pod hangs", decision{judge.Orphaned, judge.SandboxAbsent, ""}, pods(showing(other, ip2))),
		of("a pod hangs on a ready node", decision{judge.Suspected, judge.SandboxAbsent, ""}, pods(starting("n1"))),
		of("a pod hangs, and the policy holds no unreachable node", decision{judge.Suspected, judge.SandboxAbsent, ""}, pods(starting("n1")),
			terms(func(p *policy.Policy) { p.Nodes.Unreachable = policy.Release })),
		of("a pod hangs on a node that is not ready", hidden, pods(starting("n2"))),
		of("a pod hangs on a node that is gone", hidden, pods(starting("n3"))),
		of("a pod runs and does not show all that it should", hidden, pods(census.Pod{Ref: other, Node: "n1", AddressUnknown: true})),
		of("a pod shows an address, and leaves out a network", hidden, pods(census.Pod{Ref: other, Node: "n1", Addresses: []netip.Addr{ip2}, InStatus: 1, LeavesOut: true})),
		of("a pod has no address in its status, and leaves out a network", hidden, pods(census.Pod{Ref: other, Node: "n1", LeavesOut: true})),
	)
	for _, tt := range []struct {
		grace, minAge, want time.Duration
	}{{0, 0, 4 * time.Minute}, {0, 6 * time.Minute, 6 * time.Minute}, {time.Hour, 0, time.Hour}} {
		s := given(common, pods(starting("n1")), waits(tt.grace, tt.minAge))
		s.ripens(t, tt.want)
		s.ledger = s.seen(t, noon)
		s.pools[0].Allocations[0].Token = "t2"
		equal(t, "verdict on what changed meanwhile", s.judge(t, noon.Add(tt.want))[0].Verdict, judge.Suspected)
	}
}

// leased makes the first allocation a lease, and another sandbox exist.
var leased = all(entry(func(a *ipam.Allocation) { *a = lease() }), sandboxes("s2"))

// blank makes the lease one of an ADD that broke off before it wrote an owner.
var blank = entry(func(a *ipam.Allocation) { a.Owner, a.Blank = ipam.Owner{}, true })

// Promise 1, 2. On a node, the container runtime decides, and any other evidence only keeps.
func TestDecisionOnNode(t *testing.T) {
	gone := decision{judge.Suspected, judge.SandboxAbsent, ""}
	here := decision{judge.InUse, judge.SandboxPresent, ""}
	brokeOff := decision{judge.Suspected, judge.SandboxAbsent, "an ADD broke off before writing an owner"}
	ofWeb := entry(func(a *ipam.Allocation) { a.Owner.Pod = web })
	unread := func(s *situation) { s.sandboxes = nil }
	made := func(ago time.Duration) change {
		return entry(func(a *ipam.Allocation) { a.Created = noon.Add(-ago) })
	}
	minAge := func(d time.Duration) change {
		return terms(func(p *policy.Policy) { p.MinAge = &policy.Duration{Duration: d} })
	}
	verdicts(t, leased,
		of("the sandbox exists", here, sandboxes("s0", "s1")),
		of("a sandbox begins with the ID", here, sandboxes("s0", "s1234")),
		of("the sandbox is gone", gone, sandboxes("s", "s0", "s2")),
		of("there is none", gone, sandboxes()),
		of("the sandboxes were not read", held(judge.NoCensus, ""), unread),
		of("it names no sandbox", held(judge.OwnerUnknown, "it names no sandbox"), entry(func(a *ipam.Allocation) { a.Owner.Sandbox = "" })),
		of("it names a pod and no sandbox", held(judge.OwnerUnknown, "it names no sandbox"), owner(ipam.Owner{Pod: web})),
		of("a pod shows the address", shown, pods(showing(other, ip1))),
		of("a finished pod shows the address", gone, pods(finished(showing(other, ip1)))),
		of("its pod shows the address", present, ofWeb, pods(showing(web, ip1))),
		of("its pod exists in another sandbox", gone, ofWeb, pods(showing(web, ip2))),
		of("a pod hides its address", gone, pods(census.Pod{Ref: other, AddressUnknown: true})),
		of("it cannot be understood", held(judge.Unreadable, "it is empty"), entry(func(a *ipam.Allocation) { a.Unreadable = "it is empty" })),
		of("an ADD broke off before it named a sandbox", brokeOff, blank),
		of("the same, and the policy is for other pods", brokeOff, blank, terms(func(p *policy.Policy) { p.Namespaces.Include = []string{"shop"} })),
		of("the same, and a rule holds pods", brokeOff, blank, holds(policy.Match{Pods: []string{"*"}})),
		of("the same, and the sandboxes were not read", held(judge.NoCensus, ""), blank, unread),
		of("the same, and a pod shows the address", shown, blank, pods(showing(other, ip1))),
		of("something protects it", held(judge.Protected, "not of the runtime"), entry(func(a *ipam.Allocation) { a.Protected = "not of the runtime" })),
		of("it is younger than a sandbox that is being made", held(judge.TooYoung, "too young to tell until 2026-03-01T12:01:00Z"), made(9*time.Minute), minAge(0)),
		of("it is younger than the policy allows", held(judge.TooYoung, "too young to tell until 2026-03-01T13:00:00Z"), minAge(2*time.Hour)),
		of("it is as old as a sandbox can be that is being made", gone, made(10*time.Minute)),
	)
}

// Promise 1. What an ADD left behind goes when it is older than an ADD can take. A lease whose
// age is not known, or in the future, waits like one that was just made.
func TestLeaseWaitsForItsAge(t *testing.T) {
	made := func(at time.Time) change { return entry(func(a *ipam.Allocation) { a.Created = at }) }
	for _, created := range []time.Time{{}, noon.Add(24 * time.Hour)} {
		given(leased, made(created), waits(0, 0)).ripens(t, 10*time.Minute)
		given(leased, blank, made(created), waits(0, 0)).ripens(t, 10*time.Minute)
	}
	given(leased, blank, made(noon.Add(-4*time.Minute)), waits(0, 0)).ripens(t, 6*time.Minute)
}

// foreign is the decision on an allocation that may be of another cluster.
func foreign(note string) decision { return held(judge.NodeForeign, note) }

// storeNode says that the store has a node of its own for the first allocation.
func storeNode(n ipam.StoreNode) change {
	return entry(func(a *ipam.Allocation) { a.StoreNode = &n })
}

// Promise 1, 2. Two clusters may have their nodes, and their pods' addresses, in one store.
func TestNodeOfAnotherClusterKeeps(t *testing.T) {
	const lacks = ", and the list of nodes does not"
	another := webAllocation()
	another.Key, another.IP, another.Token, another.StoreNode = "2", ip2, "t2", &ipam.StoreNode{Name: "b1", Node: "b1"}
	tunnel := another
	tunnel.Foreign = "a tunnel"
	on := func(name string) change { return entry(func(a *ipam.Allocation) { a.Owner.Node = name }) }
	n1 := nodes(ready("n1"))
	dispositions(t, func(p *policy.Policy, d policy.Disposition) { p.Nodes.Foreign = d },
		either("its node is of this cluster", absent, absent, on("n1"), storeNode(ipam.StoreNode{Name: "c1", Node: "n1"}), n1),
		either("its node is not", foreign("the store has the node b1"+lacks), absent, on("b1"), storeNode(ipam.StoreNode{Name: "b1", Node: "b1"}), n1),
		either("its node has another name in its cluster", foreign("the store has the node c1 (b1 in its cluster)"+lacks), absent,
			on("b1"), storeNode(ipam.StoreNode{Name: "c1", Node: "b1"}), n1),
		either("its node has the store's name for a node of this cluster", foreign("the store has the node n1 (b1 in its cluster)"+lacks), absent,
			on("b1"), storeNode(ipam.StoreNode{Name: "n1", Node: "b1"}), n1),
		either("its node is called like one of this cluster, in other letters", foreign("the store has the node N1"+lacks), absent,
			on("N1"), storeNode(ipam.StoreNode{Name: "N1", Node: "N1"}), n1),
		either("its node cannot be read", foreign("the node n1 of the store cannot be read"), absent, on("n1"), storeNode(ipam.StoreNode{Name: "n1"}), n1),
		either("two nodes of the store are called alike", foreign("the nodes c1 and c2 of the store are both called n1 in their clusters"), absent,
			on("n1"), storeNode(ipam.StoreNode{Name: "c1", Node: "n1", Twin: "c2"}), n1),
		either("its node is gone from the store, too", absent, absent, on("b1"), n1),
		either("there are no nodes", foreign("the store has the node b1"+lacks), absent, on("b1"), storeNode(ipam.StoreNode{Name: "b1", Node: "b1"}), nodes([]census.Node{}...)),

		// It may be on any node.
		either("its node is unknown, beside one of another cluster", foreign("its node is unknown, and the store has the node b1"+lacks), absent, n1, beside(another)),
		either("its node is unknown, beside a tunnel of another cluster", foreign("its node is unknown, and the store has the node b1"+lacks), absent, n1, beside(tunnel)),
		either("its node is gone, beside one of another cluster", absent, absent, on("b2"), n1, beside(another)),
	)
	// The reason why the pod is not there does not matter. One that is in use keeps its own reason.
	held := foreign("the store has the node b1" + lacks)
	change := func(f func(a *ipam.Allocation)) change { return entry(f) }
	verdicts(t, all(on("b1"), storeNode(ipam.StoreNode{Name: "b1", Node: "b1"}), nodes(ready("n1"), notReady("n2")), terms(releaseAll),
		terms(func(p *policy.Policy) { p.Nodes.Foreign = policy.Hold })),
		of("PodAbsent", held),
		of("PodReplaced", held, change(func(a *ipam.Allocation) { a.Owner.UID = "old" }), pods(census.Pod{Ref: web, UID: "new"})),
		of("PodFinished", held, pods(census.Pod{Ref: web, Finished: true})),
		of("SandboxAbsent", held, change(func(a *ipam.Allocation) { a.Owner.Pod = ipam.PodRef{} })),
		of("in use", present, pods(showing(web, ip1))),
		of("an empty handle", decision{judge.Suspected, judge.EmptyHandle, ""}, change(func(a *ipam.Allocation) { *a = emptyHandle() })),
	)
}

// Promise 2. What another cluster may have does not count as leaked, its siblings stay, and the grace
// period begins when the node is known to be gone.
func TestWhatMayBeOfAnotherClusterIsNoLeak(t *testing.T) {
	a, sibling := webAllocation(), webAllocation()
	a.StoreNode, a.Group, sibling.Group = &ipam.StoreNode{Name: "b1", Node: "b1"}, "g", "g"
	a.Owner.Node, sibling.Owner.Node = "b1", "b2"
	sibling.Key, sibling.IP, sibling.Token = "2", ip2, "t2"
	s := situation{pools: []ipam.Pool{poolOf(a, sibling)}, nodes: []census.Node{ready("n1")}}
	decisions := s.judge(t, noon)
	equal(t, "ownerless", decisions[0].Ownerless, false)
	equal(t, "sibling", decisionOf(decisions[1]), held(judge.SiblingKept, "its sibling 10.0.0.1 is kept: NodeForeign"))
	equal(t, "warnings", judge.ForeignWarnings(decisions), []string{"1 allocation held, because the store has nodes that may be of another cluster: b1. " +
		"If no other cluster uses the store, delete those that are gone with calicoctl delete node, or set nodes.foreign to release"})

	s.ledger = s.seen(t, noon)
	s.pools[0].Allocations[0].StoreNode = nil
	equal(t, "a day later, without the node", decisionOf(s.judge(t, noon.Add(24*time.Hour))[0]), absent)
}

// Promise 1. The device of a node has the address of its tunnel, whatever the store says.
func TestAddressOfATunnelIsInUse(t *testing.T) {
	tunnelled := func(by map[netip.Addr]string) change { return func(s *situation) { s.pools[0].Tunnels = by } }
	none := tunnelled(map[netip.Addr]string{})
	by := func(note string) decision { return decision{judge.InUse, judge.AddressInUse, "shown by " + note} }
	gone := decision{judge.Orphaned, judge.PodAbsent, ""}
	away := notReady("n1")
	away.Tunnels = map[netip.Addr]string{ip1: "a"}
	verdicts(t, all(onNode1, terms(releaseAll)),
		of("a node shows it", by("node n1"), none, nodes(tunnelOn("n1", ip1))),
		of("another node shows it", by("node n2"), none, nodes(ready("n1"), tunnelOn("n2", ip1))),
		of("a node that is not ready shows it", by("node n1"), none, nodes(away)),
		of("a node shows another", gone, none, nodes(tunnelOn("n1", ip2))),
		of("a node of the store shows it", by("stored node c1"), tunnelled(map[netip.Addr]string{ip1: "c1"}), nodes(ready("n1"))),
		of("a node of the store shows another", gone, tunnelled(map[netip.Addr]string{ip2: "c1"}), nodes(ready("n1"))),
		of("nodes take no addresses of the pool", gone, nodes(tunnelOn("n1", ip1))),
		of("it names only a sandbox", by("node n1"), none, nodes(tunnelOn("n1", ip1)), entry(func(a *ipam.Allocation) { a.Owner.Pod = ipam.PodRef{} })),
		of("it names only a sandbox, which a pod shows", decision{judge.InUse, judge.PodPresent, "a pod shows its sandbox"}, none,
			nodes(tunnelOn("n1", ip1)), entry(func(a *ipam.Allocation) { a.Owner.Pod = ipam.PodRef{} }), pods(census.Pod{Ref: other, Sandbox: "s1"})),
		of("its pod has finished", by("node n1"), none, nodes(tunnelOn("n1", ip1)), pods(census.Pod{Ref: web, Finished: true})),
		of("its pod shows it, too", present, none, nodes(tunnelOn("n1", ip1)), pods(showing(web, ip1))),
		of("an empty handle", decision{judge.Suspected, judge.EmptyHandle, ""}, none, nodes(tunnelOn("n1", ip1)), entry(func(a *ipam.Allocation) { *a = emptyHandle() })),
	)
}

// The store names the node of an address and no pod, and has names of its own for nodes. That an
// address of the same sandbox was seen on a node says nothing about it: what is not ready keeps it.
func TestNodeThatTheStoreNamesWithoutAPodIsNotLearned(t *testing.T) {
	four, six := calicoOf("calico-n1"), calicoOf("calico-n1")
	four.Key, four.IP, four.Token = "4", ip1, "c4"
	four.Owner = ipam.Owner{Node: "calico-n1"}
	betrays := calicoOf("calico-n2")
	betrays.Key, betrays.IP, betrays.Owner.Pod, betrays.Group = "9", ip(9), other, "handle-s9"
	up := census.Pod{Ref: web, Node: "n1", Addresses: []netip.Addr{ip1, ip2}, InStatus: 2}
	elsewhere := census.Pod{Ref: other, Node: "n2", Addresses: []netip.Addr{ip(9)}, InStatus: 1}
	w := newSequence(fixedStore{poolOf(four, six, betrays)})
	w.cluster([]census.Pod{up, elsewhere}, ready("n1"), ready("n2"), ready("n9"))
	w.run(t)
	w.cluster([]census.Pod{elsewhere}, ready("n1"), ready("n2"), notReady("n9"))
	w.now = w.now.Add(time.Hour)
	for _, d := range w.run(t)[:2] {
		equal(t, "verdict on "+d.Allocation.Key, d.Verdict, judge.Held)
	}
}
