package judge_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// onHost is a pod that was made on the network of its node an hour ago. Its status has the address of
// the node.
func onHost() census.Pod {
	pod := showing(web, ip(200))
	pod.HostNetwork, pod.InStatus, pod.Node, pod.Created, pod.UID = true, 1, "n1", noon.Add(-time.Hour), "new"
	return pod
}

// Promise 1, 2. No plugin is asked for a pod on the network of its node, so what a store has for its name
// is of an earlier pod. All that holds an earlier pod's address comes first.
func TestPodOnTheHostsNetworkLeavesWhatAnEarlierPodOfItsNameHad(t *testing.T) {
	replaced := decision{judge.Suspected, judge.PodReplaced, "the pod is on the network of its node"}
	its := func(change func(p *census.Pod)) change { return func(s *situation) { change(&s.pods[0]) } }
	node := func(n census.Node) change { return func(s *situation) { s.nodes = []census.Node{n, ready("n2")} } }
	on := func(node string) change { return entry(func(a *ipam.Allocation) { a.Owner.Node = node }) }
	common := func(s *situation) {
		s.pods, s.nodes, s.policy = []census.Pod{onHost()}, []census.Node{ready("n1"), ready("n2")}, releaseNow
	}
	verdicts(t, common,
		of("all is proved", replaced),
		of("each sandbox has its own allocation", replaced, entry(func(a *ipam.Allocation) { a.Adoption = ipam.SandboxOwned })),
		of("the pod asks Multus for networks all the same, which it never gets", replaced, its(func(p *census.Pod) { p.AddressUnknown = true })),
		of("the pod has no node yet", replaced, its(func(p *census.Pod) { p.Node, p.Addresses, p.InStatus = "", nil, 0 })),
		of("the pod is not on the network of its node", decision{judge.InUse, judge.PodPresent, "its pod shows 10.0.0.200 on net1"}, its(func(p *census.Pod) { p.HostNetwork = false })),
		of("the pod is on a node of Windows, where it gets an address all the same", present, node(census.Node{Name: "n1", Ready: true, Windows: true})),
		of("the nodes are not read", present, func(s *situation) { s.nodes = nil }),
		of("the mirror of a static pod, whose manifest may have changed", present, its(func(p *census.Pod) { p.Created = time.Time{} })),
		of("the pod shows the address", present, its(func(p *census.Pod) { p.Addresses = append(p.Addresses, ip1) })),
		of("another pod shows the address", shown, func(s *situation) { s.pods = append(s.pods, showing(other, ip1)) }),
		of("the store says that it is of this very pod", present, entry(func(a *ipam.Allocation) { a.Owner.UID = "new" })),
		of("the pod has ended", held(judge.PodFinished, ""), its(func(p *census.Pod) { p.Finished = true })),
		of("the node of the earlier pod is unreachable", held(judge.NodeUnreachable, "node n3 is not ready"), on("n3"),
			func(s *situation) { s.nodes = append(s.nodes, notReady("n3")) }),
		of("the node of the earlier pod is unknown, and some node is unreachable",
			held(judge.NodeUnreachable, "its node is unknown, and these are not ready: n3"),
			func(s *situation) { s.nodes = append(s.nodes, notReady("n3")) }),
		of("the pod moved, too", decision{judge.Suspected, judge.PodMoved, "the pod is on node n1"}, on("n2"),
			entry(func(a *ipam.Allocation) { a.Adoption = ipam.SandboxOwned })),
		of("a rule holds it", held(judge.RuleHold, "held by rules[0]: pods w*"), holds(policy.Match{Pods: []string{"w*"}})),
	)
	given(common).ripens(t, 4*time.Minute)
	aged := entry(func(a *ipam.Allocation) { a.Adoption, a.Created = ipam.SandboxOwned, noon.Add(-time.Hour) })
	given(common, aged).ripens(t, 90*time.Second)
	given(common, aged, on("n1"), node(census.Node{Name: "n1", OutOfService: true})).ripens(t, 0)
}

// Promise 1. A kubelet runs a static pod whether or not it can make the mirror, and it cannot while
// another pod has that name. No run need have seen the mirror.
func TestPodWithTheNameOfAMirrorReplacesNothing(t *testing.T) {
	ref := ipam.PodRef{Namespace: web.Namespace, Name: web.Name + "-n1"}
	named := func(s *situation) {
		s.pods, s.nodes, s.policy = []census.Pod{onHost()}, []census.Node{ready("n1"), ready("n2")}, releaseNow
		s.pods[0].Ref, s.pools[0].Allocations[0].Owner.Pod = ref, ref
	}
	onOther := func(s *situation) { // and waits for an address there
		s.pods[0].HostNetwork, s.pods[0].Node, s.pods[0].AddressUnknown, s.pods[0].Starting = false, "n2", true, true
		s.pods[0].Addresses, s.pods[0].Interfaces, s.pods[0].InStatus = nil, nil, 0
	}
	inCalico := entry(func(a *ipam.Allocation) {
		a.Adoption, a.Created, a.Owner.Node = ipam.SandboxOwned, noon.Add(-2*time.Hour), "n1"
	})
	unnamed := func(s *situation) { s.pods[0].Ref, s.pools[0].Allocations[0].Owner.Pod = web, web }
	verdicts(t, named,
		of("on the network of its node", present),
		of("on the network of its node, for an allocation whose node is known", present, inCalico),
		of("on another node", present, inCalico, onOther),
		of("younger than the allocation", present, inCalico, onOther, func(s *situation) { s.pods[0].Node = "n1" }),
		of("on the network of its node, by another name", decision{judge.Suspected, judge.PodReplaced, "the pod is on the network of its node"}, unnamed),
		of("on another node, by another name", decision{judge.Suspected, judge.PodMoved, "the pod is on node n2"}, inCalico, onOther, unnamed),
		of("no node has the name", decision{judge.Suspected, judge.PodReplaced, "the pod is on the network of its node"},
			func(s *situation) { s.pods[0].Node, s.nodes = "n2", []census.Node{ready("n2"), ready("n11")} }),
	)
}

// Promise 1. A pod that has ended may have taken the name of one whose containers still end. It does not
// show what that one had.
func TestEndOfALaterPodIsNotThatOfAnEarlierOne(t *testing.T) {
	earlier := showing(web, ip1)
	earlier.Node, earlier.InStatus, earlier.TerminationGrace = "n2", 1, time.Hour
	later := onHost()
	later.Finished = true
	for _, tt := range []struct {
		name   string
		before []census.Pod // what an earlier run saw
		later  func(p *census.Pod)
		want   time.Duration
	}{
		{"on the network of its node", nil, func(*census.Pod) {}, 4 * time.Minute},
		{"on the network of its node, and the earlier one has an hour to end", []census.Pod{earlier}, func(*census.Pod) {}, time.Hour + time.Minute},
		{"with an address of its own, and the earlier one has an hour to end", []census.Pod{earlier}, func(p *census.Pod) { p.HostNetwork = false }, time.Hour + time.Minute},
		{"with this address", []census.Pod{earlier}, func(p *census.Pod) { p.HostNetwork, p.Addresses = false, []netip.Addr{ip1} }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := given(nodes(ready("n1"), ready("n2")), pods(tt.before...), terms(func(p *policy.Policy) {
				releaseNow(p)
				p.Pods.Finished = policy.Release
			}))
			if s.pods != nil {
				s.ledger = s.seen(t, noon.Add(-time.Minute))
			}
			pod := later
			tt.later(&pod)
			s.pods = []census.Pod{pod}
			s.ripens(t, tt.want)
		})
	}
}

// Promise 1. A pod on the network of its node may take the name of one whose sandbox may still run.
func TestPodOnTheHostsNetworkEndsNoHold(t *testing.T) {
	for _, tt := range []struct {
		name    string
		earlier census.Pod
		want    judge.Reason
	}{{"a pod hung", hanging(), judge.TerminationStuck}, {"a static pod without its mirror", mirrored(), judge.StaticPod}} {
		t.Run(tt.name, func(t *testing.T) {
			a := webAllocation()
			a.IP = ip2
			s := situation{policy: releaseNow, pools: []ipam.Pool{poolOf(a)}, pods: []census.Pod{tt.earlier}, nodes: []census.Node{booted("b1")}}
			s.ledger = s.seen(t, noon)
			s.pods = []census.Pod{onHost()}
			equal(t, "reason", s.judge(t, noon)[0].Reason, tt.want)
			s.ledger = s.seen(t, noon)
			equal(t, "reason in the next run", s.judge(t, noon.Add(time.Hour))[0].Reason, tt.want)
			s.pods[0].Finished, s.pods[0].Deadline = true, noon
			s.ledger = s.seen(t, noon.Add(2*time.Hour))
			s.pods = nil
			equal(t, "reason once that pod has ended", s.judge(t, noon.Add(3*time.Hour))[0].Reason, tt.want)
			s.pods, s.nodes = []census.Pod{onHost()}, []census.Node{booted("b2")}
			equal(t, "reason after a reboot", s.judge(t, noon)[0].Reason, judge.PodReplaced)
		})
	}
}

// Promise 4. The second look finds a pod of that name that is not on the network of its node.
func TestPodThatIsNoLongerOnTheHostsNetworkKeepsTheAddress(t *testing.T) {
	s := situation{policy: releaseNow, pools: []ipam.Pool{poolOf(webAllocation())}, pods: []census.Pod{onHost()}, nodes: []census.Node{ready("n1")}}
	s.ledger = s.seen(t, noon.Add(-time.Hour))
	inv := inventory(t, fixedStore(s.pools))
	plan := judge.MakePlan(judge.Judge(noon, s.terms(), inv, s.census(t), s.ledger))
	if len(plan.Due) != 1 {
		t.Fatalf("%d due, want 1", len(plan.Due))
	}
	look := func(pod census.Pod) error {
		fresh := s.census(t).With(map[ipam.PodRef]census.Reading{web: {Pod: pod, Presence: census.Present, Began: time.Now()}})
		_, err := judge.NewSecondLook(fresh).StillOrphaned(plan.Orphan(plan.Due[0]))
		return err
	}
	if err := look(onHost()); err != nil {
		t.Errorf("the same pod: %v", err)
	}
	again := onHost()
	again.HostNetwork, again.Addresses, again.InStatus, again.AddressUnknown, again.Starting = false, nil, 0, true, true
	if err := look(again); err == nil {
		t.Error("a pod that waits for an address: it is still an orphan")
	}
}
