package reaper_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// movedSituation returns an allocation of web on n1, and web on n2, where it hangs
// without an address.
func movedSituation() (reaper.Allocation, reaper.Pod) {
	a := webAllocation()
	a.SandboxOwned, a.NeverAdopted = true, true
	a.Owner.Node, a.Created = "n1", noon.Add(-time.Hour)
	return a, reaper.Pod{Ref: web, Node: "n2", AddressUnknown: true, Starting: true}
}

// Promise 1, 2. Each case that is kept lacks one part of the proof.
func TestPodOnAnotherNodeLeavesItsAllocationOnlyWithTheProof(t *testing.T) {
	kept := decision{reaper.InUse, reaper.PodPresent, ""}
	moved := decision{reaper.Suspected, reaper.PodMoved, "the pod is on node n2"}
	atOnce := decision{reaper.Orphaned, reaper.PodMoved, "the pod is on node n2"}
	waits := decision{reaper.Suspected, reaper.PodMoved, "the pod is on node n2"}
	type parts struct {
		a     *reaper.Allocation
		pod   *reaper.Pod
		nodes []reaper.Node
	}
	for _, tt := range []struct {
		name   string
		change func(*parts)
		want   decision
	}{
		{"all is proved", func(*parts) {}, moved},
		{"the old node is gone, and another pod's node is known", func(p *parts) { p.nodes[0].Name = "n3" }, kept},
		{"the old node is fenced", func(p *parts) { p.nodes[0] = reaper.Node{Name: "n1", OutOfService: true} }, atOnce},
		{"the old node is unreachable", func(p *parts) { p.nodes[0] = notReady("n1") }, unreachable},
		{"the new node is unreachable", func(p *parts) { p.nodes[1] = notReady("n2") }, kept},
		{"the new node is not known", func(p *parts) { p.nodes = p.nodes[:1] }, kept},
		{"the pod has no node yet", func(p *parts) { p.pod.Node = "" }, kept},
		{"the pod is on the same node", func(p *parts) { p.pod.Node = "n1" }, kept},
		{"the store names no node", func(p *parts) { p.a.Owner.Node = "" }, kept},
		{"a later sandbox may adopt the allocation", func(p *parts) { p.a.SandboxOwned, p.a.NeverAdopted = false, false }, kept},
		{"the pod has ended", func(p *parts) { p.pod.Finished, p.pod.AddressUnknown = true, false }, decision{reaper.Held, reaper.PodFinished, ""}},
		{"the pod shows the address", func(p *parts) { p.pod.Addresses = append(p.pod.Addresses, ip1) }, kept},
		{"the pod may have an address that it does not show", func(p *parts) { p.pod.Starting = false }, kept},
		{"the store has an address of the pod's status on the old node", func(p *parts) {
			p.pod.Addresses, p.pod.InStatus, p.pod.AddressUnknown, p.pod.Starting = []netip.Addr{ip2}, 1, false, false
		}, kept},
		{"the pod leaves out a network that never has an address", func(p *parts) {
			p.pod.AddressUnknown, p.pod.Starting, p.pod.LeavesOut = false, false, true
		}, moved},
		{"the pod claims an address that the store has on the old node", func(p *parts) { p.pod.Addresses = []netip.Addr{ip2} }, moved},
		{"the name is derived", func(p *parts) { p.a.Inferred = true }, kept},
		{"the allocation may be of an ADD in flight", func(p *parts) { p.a.Created = noon.Add(-time.Minute) }, waits},
		{"the store does not say its age", func(p *parts) { p.a.Created = time.Time{} }, waits},
		{"it was made in the future", func(p *parts) { p.a.Created = noon.Add(time.Hour) }, waits},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, pod := movedSituation()
			p := parts{&a, &pod, []reaper.Node{ready("n1"), ready("n2")}}
			tt.change(&p)
			sibling := a
			sibling.Key, sibling.IP, sibling.Token = "2", ip2, "t2"
			s := situation{pools: []reaper.Pool{poolOf(a, sibling)}, pods: []reaper.Pod{pod}, nodes: p.nodes, policy: releaseNow}
			d := s.judge(t, noon)[0]
			equal(t, "verdict", decisionOf(d), tt.want)
			if a.Created.Equal(noon.Add(-time.Minute)) {
				equal(t, "due", d.Due, noon.Add(3*time.Minute))
			}
		})
	}
}

// releaseNow takes the waits out of the policy that a policy may take out.
func releaseNow(p *policy.Policy) {
	p.GracePeriod, p.MinAge = &policy.Duration{}, &policy.Duration{}
}

// The names of Calico's nodes may differ from those of the API server. Then they prove
// nothing. If the store knows a node by the same name, they do, also of a node that is
// gone.
func TestNodeThatIsGoneCountsIfTheStoreNamesOthersAsTheAPIServerDoes(t *testing.T) {
	a, pod := movedSituation()
	neighbour := a
	neighbour.Key, neighbour.IP, neighbour.Token, neighbour.Owner.Pod, neighbour.Owner.Node = "2", ip2, "t2", other, "n2"
	s := situation{
		pools: []reaper.Pool{poolOf(a, neighbour)}, pods: []reaper.Pod{pod, showing(other, ip2)},
		nodes: []reaper.Node{ready("n2")}, policy: releaseNow,
	}
	s.ledger = s.seen(t, noon)
	equal(t, "verdict at first", decisionOf(s.judge(t, noon)[0]), decision{reaper.Suspected, reaper.PodMoved, "the pod is on node n2"})
	equal(t, "verdict", decisionOf(s.judge(t, noon.Add(90*time.Second))[0]), decision{reaper.Orphaned, reaper.PodMoved, "the pod is on node n2"})
}

// Promise 1, 4. The second look reads the pod: it may have the address by now.
func TestPodThatMovedAndShowsTheAddressByNowKeepsIt(t *testing.T) {
	a, pod := movedSituation()
	h := newHarness(fixedStore{poolOf(a)})
	h.policy = policy.Default()
	releaseNow(&h.policy)
	h.policy.DryRun = new(bool)
	h.pods.Add(pod)
	h.pods.AddNodes(reaper.Node{Name: "n1", OutOfService: true}, ready("n2"))
	h.pods.OnCall(func(call string) error {
		if call == "get pod default/web" {
			pod.Addresses = append(pod.Addresses, ip1)
			h.pods.Add(pod)
		}
		return nil
	})
	equal(t, "outcome", outcomes(h.run(t))["1"], reaper.Returned)
}

// A StatefulSet keeps only what its pods can adopt.
func TestStatefulSetDoesNotKeepWhatNoPodAdopts(t *testing.T) {
	for _, never := range []bool{false, true} {
		a := webAllocation()
		a.Owner.Pod.Name, a.NeverAdopted = "db-0", never
		s := situation{pools: []reaper.Pool{poolOf(a)}, sets: []reaper.StatefulSet{{Namespace: "default", Name: "db", Replicas: 1}}}
		want := decision{reaper.Held, reaper.Retained, "its StatefulSet brings the pod back"}
		if never {
			want = decision{reaper.Suspected, reaper.PodAbsent, ""}
		}
		equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), want)
	}
}
