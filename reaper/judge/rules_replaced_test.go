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

// A rival is two allocations of one pod, the first of which may be of a sandbox that is gone.
type rival struct {
	older, newer *ipam.Allocation
	pod          *census.Pod
	endpoint     *ipam.Endpoint
}

// A proof is a rival with a change, and the decision on the older allocation.
type proof struct {
	name   string
	want   decision
	change func(r rival)
}

// replaced is the decision on an allocation whose pod has another one, with 10.0.0.2.
var replaced = decision{judge.Suspected, judge.SandboxReplaced, "the pod has 10.0.0.2"}

// ip3 and ip9 are addresses that the allocations of rivals do not have.
var ip3, ip9 = netip.MustParseAddr("10.0.0.3"), netip.MustParseAddr("10.0.0.9")

// proves judges the rivals, which are in separate pools if apart is set. Another pod shows
// 10.0.0.9.
func proves(t *testing.T, apart bool, situations func() (older, newer ipam.Allocation, pod census.Pod), proofs ...proof) {
	t.Helper()
	for _, p := range proofs {
		t.Run(p.name, func(t *testing.T) {
			older, newer, pod := situations()
			var endpoint ipam.Endpoint
			if p.change != nil {
				p.change(rival{&older, &newer, &pod, &endpoint})
			}
			s := situation{
				pools: []ipam.Pool{poolOf(older, newer)}, pods: []census.Pod{pod, showing(other, ip9)},
				endpoints: map[ipam.PodRef]ipam.Endpoint{web: endpoint},
			}
			if apart {
				there := poolOf(newer)
				there.Name = "there"
				s.pools = []ipam.Pool{poolOf(older), there}
			}
			equal(t, "verdict", decisionOf(s.judge(t, noon)[0]), p.want)
			if p.want == replaced {
				for _, d := range []policy.Disposition{policy.Hold, "", "nonsense"} {
					s.policy = func(p *policy.Policy) { p.Pods.Superseded = d }
					equal(t, "verdict under "+string(d), decisionOf(s.judge(t, noon)[0]), held(judge.SandboxReplaced, replaced.Note))
				}
			}
		})
	}
}

// Promise 1, 2. Each case that is kept lacks one part of the proof.
func TestSandboxIsReplacedOnlyWithTheProof(t *testing.T) {
	proves(t, false, supersededSituation,
		proof{"all is proved", replaced, nil},
		proof{"neither allocation names an interface, so either may be the older", present, func(r rival) { r.newer.Owner.Interface, r.newer.Adoption = "", ipam.NeverAdopted }},
		proof{"both allocations name the interface, so either may be the older", present, func(r rival) { r.older.Owner.Interface, r.older.Adoption = "net1", ipam.Adoptable }},
		proof{"a later sandbox may adopt the allocation", present, func(r rival) { r.older.Adoption = ipam.Adoptable }},
		proof{"both are of one sandbox", present, func(r rival) { r.newer.Owner.Sandbox = "s1" }},
		proof{"this allocation names no sandbox", present, func(r rival) { r.older.Owner.Sandbox = "" }},
		proof{"the other allocation names no sandbox", present, func(r rival) { r.newer.Owner.Sandbox = "" }},
		proof{"the pod shows both addresses", present, func(r rival) { *r.pod = showing(web, ip1, ip2) }},
		proof{"the pod shows the other address, but on no interface", present, func(r rival) { r.pod.Interfaces = nil }},
		proof{"the pod shows the other address on another interface", present, func(r rival) { r.pod.Interfaces = on("net2", ip2) }},
		proof{"the other allocation is for another interface", present, func(r rival) { r.newer.Owner.Interface = "net2" }},
		proof{"the other allocation is another pod's", present, func(r rival) { r.newer.Owner.Pod = other }},
		proof{"the other allocation cannot be read", present, func(r rival) { r.newer.Unreadable = "no JSON" }},
		proof{"the other allocation is for the same address", present, func(r rival) { r.newer.IP = r.older.IP }},
		proof{"the other allocation is not a pod's", present, func(r rival) { r.newer.Foreign = "a tunnel" }},
		proof{"the other allocation holds no address any more", present, func(r rival) { r.newer.EmptyHandle = true }},
		proof{"the pod's status cannot be read as a whole", present, func(r rival) { r.pod.AddressUnknown = true }},
		proof{"the pod leaves out a network, which may have this address", present, func(r rival) { r.pod.LeavesOut = true }},
		proof{"the pod shows another address, which this pool does not hold", present, func(r rival) { *r.pod = showing(web, ip3) }},
	)
	proves(t, true, supersededSituation, proof{"the other allocation is in another pool", present, nil})
}

// Promise 1, 2. The pod owns all its annotations. If the store has the address of the pod's
// status for one of the sandboxes, that one is its sandbox.
func TestStatusTellsWhichOfTwoSandboxesThePodHas(t *testing.T) {
	for _, tt := range []struct {
		name    string
		sandbox string // that has the address of the status
		change  func(primary *ipam.Allocation, pod *census.Pod)
		want    decision
	}{
		{"the other", "s2", nil, replaced},
		{"this one, and the pod claims the address of the other", "s1", nil, elsewhere},
		{"a third one", "s3", nil, elsewhere},
		{"the pod only claims that address", "s2", func(_ *ipam.Allocation, pod *census.Pod) { pod.InStatus = 0 }, present},
		{"the address is another pod's", "s2", func(primary *ipam.Allocation, _ *census.Pod) { primary.Owner.Pod = other }, elsewhere},
		{"sandboxes adopt the allocations of that store", "s2", func(primary *ipam.Allocation, _ *census.Pod) { primary.Adoption = ipam.Adoptable }, elsewhere},
	} {
		t.Run(tt.name, func(t *testing.T) {
			older, newer, pod := supersededSituation()
			older.Owner.Interface, older.Adoption = "net1", ipam.Adoptable // no version tells them apart
			primary := webAllocation()
			primary.Key, primary.IP, primary.Token, primary.Adoption = "9", netip.MustParseAddr("10.9.0.9"), "t9", ipam.SandboxOwned
			primary.Owner.Sandbox = tt.sandbox
			pod.Addresses, pod.InStatus = append([]netip.Addr{primary.IP}, pod.Addresses...), 1
			if tt.change != nil {
				tt.change(&primary, &pod)
			}
			inv := inventory(t, fixedStore{poolOf(older, newer)}, namedStore{fixedStore{poolOf(primary)}, "store"})
			equal(t, "verdict", decisionOf(judge.Judge(noon, policy.Default(), inv, censusOf(pod), ledger.Ledger{})[0]), tt.want)
		})
	}
}

// Promise 1, 7. What a pod shows instead of an address keeps the allocation, and is told, if the pod
// hides nothing.
func TestPodThatShowsOthersKeepsTheAddressAndIsTold(t *testing.T) {
	ip7 := netip.MustParseAddr("10.9.0.7") // of the status
	its := func(change func(p *census.Pod)) change {
		return func(s *situation) { change(&s.pods[0]) }
	}
	told := func(note string) decision { return decision{judge.InUse, judge.PodPresent, note} }
	common := func(s *situation) {
		s.pods = []census.Pod{{
			Ref: web, Addresses: []netip.Addr{ip7, ip2}, InStatus: 1,
			Interfaces: []census.Interface{{Name: "eth0", Addresses: []netip.Addr{ip7}}, {Name: "net1", Addresses: []netip.Addr{ip2}}},
		}}
	}
	verdicts(t, common,
		of("another address on the interface", elsewhere),
		of("none on the interface", told("its pod shows no address on net1"), its(func(p *census.Pod) { p.Interfaces[1].Addresses = nil })),
		of("no such interface", told("its pod shows no address on net1"), its(func(p *census.Pod) { p.Interfaces = p.Interfaces[:1] })),
		of("the allocation names no interface", told("its pod shows 10.9.0.7, 10.0.0.2"), entry(func(a *ipam.Allocation) { a.Owner.Interface = "" })),
		of("no network-status, and it is not known what attaches others", present, its(func(p *census.Pod) { p.Interfaces = nil })),
		of("no network-status, and the first interface", told("its pod shows 10.9.0.7, 10.0.0.2"),
			its(func(p *census.Pod) { p.Interfaces = nil }), entry(func(a *ipam.Allocation) { a.Owner.Interface = "eth0" })),
		of("the allocation names no interface, and the pod shows none of its family", present, entry(func(a *ipam.Allocation) {
			a.Owner.Interface, a.IP = "", netip.MustParseAddr("fd00::1")
		})),
		of("the pod shows the address, too", present, its(func(p *census.Pod) { p.Addresses = append(p.Addresses, ip1) })),
		of("the pod may hide an address", present, its(func(p *census.Pod) { p.AddressUnknown = true })),
		of("the pod leaves out a network", present, its(func(p *census.Pod) { p.LeavesOut = true })),
		of("the pod is not set up yet", present, its(func(p *census.Pod) { p.InStatus = 0 })),
		of("the allocation holds no address", present, entry(func(a *ipam.Allocation) { a.IP, a.EmptyHandle = netip.Addr{}, true })),
	)
	s := given(common)
	d := s.judge(t, noon)[0]
	equal(t, "evidence", d.Evidence, []judge.Evidence{
		{Source: "list of pods", Says: "the pod exists"}, {Source: "network-status annotation", Says: "it shows 10.0.0.2 on net1"},
	})
	equal(t, "plainly in use", d.PlainlyInUse(), false)
	equal(t, "by name", d.ByName, true)

	s.pods[0].Node, s.pods[0].Deadline = "n1", noon.Add(-5*time.Minute)
	s.nodes = []census.Node{booted("b1")}
	s.ledger = s.seen(t, noon)
	s.pods = nil
	equal(t, "verdict after its pod hung", s.judge(t, noon)[0].Reason, judge.TerminationStuck)
}

// laterSandboxSituation returns an allocation of sandbox s1, and one that sandbox s2
// got a minute later. The pod names no sandbox, and its status has the address of s2.
func laterSandboxSituation() (older, newer ipam.Allocation, pod census.Pod) {
	older, newer = webAllocation(), webAllocation()
	older.Adoption, newer.Adoption = ipam.SandboxOwned, ipam.SandboxOwned
	older.Owner.Node, newer.Owner.Node = "node-1", "node-1"
	older.Created, newer.Created = noon.Add(-time.Hour), noon.Add(-time.Hour+time.Minute)
	newer.Key, newer.IP, newer.Token, newer.Owner.Sandbox = "2", ip2, "t2", "s2"
	return older, newer, census.Pod{Ref: web, Addresses: []netip.Addr{ip2}, InStatus: 1}
}

// Promise 1, 2. Each case that is kept lacks one part of the proof. Plugins that only
// use Calico's IPAM do not write the sandbox into the pod's annotations.
func TestSandboxIsReplacedOnlyByALaterOneThatThePodShows(t *testing.T) {
	proves(t, true, laterSandboxSituation,
		proof{"all is proved", replaced, nil},
		proof{"the other allocation is older", present, func(r rival) { r.older.Created, r.newer.Created = r.newer.Created, r.older.Created }},
		proof{"both are of the same moment", present, func(r rival) { r.older.Created = r.newer.Created }},
		proof{"this allocation has no age", replaced, func(r rival) { r.older.Created = time.Time{} }},
		proof{"the other allocation has no age", replaced, func(r rival) { r.newer.Created = time.Time{} }},
		proof{"only an annotation has the address", present, func(r rival) { r.pod.InStatus = 0 }},
		proof{"the kubelet says that the sandbox of the status is gone", present, func(r rival) { r.pod.NoSandbox = true }},
		proof{"it says so of a pod that has ended", replaced, func(r rival) { r.pod.NoSandbox, r.pod.Finished = true, true }},
		proof{"the endpoint is of the other sandbox", replaced, func(r rival) { *r.endpoint = endpointOf(*r.newer) }},
		proof{"the endpoint is of a third sandbox", replaced, func(r rival) { *r.endpoint = ipam.Endpoint{Name: "e", Sandbox: "s3", Addresses: []netip.Addr{ip9}} }},
		proof{"the endpoint is of this sandbox", present, func(r rival) { *r.endpoint = ipam.Endpoint{Name: "e", Sandbox: "s1"} }},
		proof{"the endpoint has this address", present, func(r rival) { *r.endpoint = ipam.Endpoint{Name: "e", Sandbox: "s2", Addresses: []netip.Addr{ip1}} }},
		proof{"the endpoint could not be read", present, func(r rival) { r.endpoint.Err = errForbidden }},
		proof{"both are of one sandbox", present, func(r rival) { r.newer.Owner.Sandbox = "s1" }},
		proof{"this allocation names no sandbox", present, func(r rival) { r.older.Owner.Sandbox = "" }},
		proof{"the other allocation names no sandbox", present, func(r rival) { r.newer.Owner.Sandbox = "" }},
		proof{"the other allocation is another pod's", present, func(r rival) { r.newer.Owner.Pod = other }},
		proof{"the other allocation cannot be read", present, func(r rival) { r.newer.Unreadable = "no JSON" }},
		proof{"the pod shows another address", present, func(r rival) { r.pod.Addresses = []netip.Addr{ip3} }},
		proof{"the pod shows both addresses", present, func(r rival) { r.pod.Addresses = []netip.Addr{ip2, ip1} }},
		proof{"the pod still shows the address of the older one", present, func(r rival) { r.pod.Addresses = []netip.Addr{ip1} }},
		proof{"the pod does not show all that it should", present, func(r rival) { r.pod.AddressUnknown = true }},
		proof{"the pod leaves out a network that never has an address", replaced, func(r rival) { r.pod.LeavesOut = true }},
		proof{"the pod names this sandbox", present, func(r rival) { r.pod.Sandbox = "s1" }},
		proof{"this allocation is of another node, whose clock may be wrong", present, func(r rival) { r.older.Owner.Node = "node-2" }},
		proof{"no allocation names its node", present, func(r rival) { r.older.Owner.Node, r.newer.Owner.Node = "", "" }},
		proof{"this allocation is of another node, and long before", replaced, func(r rival) {
			r.older.Owner.Node, r.newer.Created = "node-2", r.older.Created.Add(4*time.Minute+time.Second)
		}},
	)
	// While the ADD of the newer sandbox is in flight, the pod shows the address of the older one.
	older, newer, pod := laterSandboxSituation()
	pod.Addresses = []netip.Addr{older.IP}
	s := situation{pools: []ipam.Pool{poolOf(older, newer)}, pods: []census.Pod{pod}}
	equal(t, "verdict on the newer", decisionOf(s.judge(t, noon)[1]), present)
}

// endpointOf returns the endpoint of the sandbox of an allocation.
func endpointOf(a ipam.Allocation) ipam.Endpoint {
	return ipam.Endpoint{Name: "n1-k8s-web-eth0", Sandbox: a.Owner.Sandbox, Addresses: []netip.Addr{a.IP}}
}

// sandboxSituation returns an allocation of sandbox s1, one that sandbox s2 got a minute
// later, and their pod, which shows sandbox s2 and its address.
func sandboxSituation() (a, later ipam.Allocation, pod census.Pod) {
	a, later, pod = laterSandboxSituation()
	pod.Sandbox = "s2"
	return a, later, pod
}

// Promise 1, 2. Each case that is kept lacks one part of the proof.
func TestSandboxWithItsOwnAllocationIsReplacedOnlyWithTheProof(t *testing.T) {
	proves(t, false, sandboxSituation,
		proof{"all is proved", replaced, nil},
		proof{"the allocation names no interface", replaced, func(r rival) { r.older.Owner.Interface = "" }},
		proof{"the pod shows no address of the store, and only claims the sandbox", present, func(r rival) { r.pod.Addresses = []netip.Addr{ip3} }},
		proof{"the pod claims a sandbox that the store does not have", present, func(r rival) { r.pod.Sandbox, r.pod.Addresses = "forged", []netip.Addr{ip3} }},
		proof{"the pod claims a sandbox of another pod", present, func(r rival) { r.newer.Owner.Pod = other }},
		proof{"the pod claims its sandbox before this one", present, func(r rival) { r.newer.Created = r.older.Created.Add(-time.Minute) }},
		proof{"the later sandbox is of another node, whose clock may be wrong", present, func(r rival) { r.newer.Owner.Node = "node-2" }},
		proof{"the later allocation is of the future", present, func(r rival) { r.newer.Created = noon.Add(time.Second) }},
		proof{"the later allocation cannot be read", present, func(r rival) { r.newer.Unreadable = "no JSON" }},
		proof{"the store does not say when, and the pod claims the sandbox", present, func(r rival) { r.older.Created, r.pod.InStatus = time.Time{}, 0 }},
		proof{"the pod claims the sandbox and its address", present, func(r rival) { r.pod.InStatus = 0 }},
		proof{"the pod shows the same sandbox", present, func(r rival) { r.pod.Sandbox = "s1" }},
		proof{"the allocation names no sandbox", present, func(r rival) { r.older.Owner.Sandbox = "" }},
		proof{"the pod shows no address", present, func(r rival) { r.pod.Addresses, r.pod.InStatus = nil, 0 }},
		proof{"the pod does not show all that it should", present, func(r rival) { r.pod.AddressUnknown = true }},
		proof{"the pod shows this address too", present, func(r rival) { r.pod.Addresses = []netip.Addr{ip2, ip1} }},
		proof{"sandboxes may adopt allocations of others", present, func(r rival) { r.older.Adoption = ipam.Adoptable }},
		proof{"another pod shows the address", shown, func(r rival) { r.older.IP = ip9 }},
	)
	// The status has an address that this sandbox got on another interface, so it is the pod's
	// sandbox, and the annotations are false or late.
	a, later, pod := sandboxSituation()
	sibling := a
	sibling.Key, sibling.IP, sibling.Token = "3", ip3, "t3"
	pod.Addresses, pod.InStatus = []netip.Addr{ip3, ip2}, 1
	s := situation{pools: []ipam.Pool{poolOf(a, later, sibling)}, pods: []census.Pod{pod}}
	equal(t, "verdict on a sandbox with an address of the status", decisionOf(s.judge(t, noon)[0]), present)
}

// Promise 1. While the ADD of a new sandbox is in flight, its pod still shows the old one, and
// the new allocation looks replaced. No ADD takes longer than 4 minutes. How old an allocation is says
// nothing: an adopted one can be older than its sandbox, and the clock of its node may be wrong.
func TestReplacedSandboxWaitsUntilItsAddMustBeOver(t *testing.T) {
	const m = time.Minute
	old := noon.Add(-4 * m)
	for _, tt := range []struct {
		name          string
		adopted       bool
		created       time.Time
		grace, minAge time.Duration
		want          time.Duration // after noon
	}{
		{"of unknown age", false, time.Time{}, 0, 0, 4 * m},
		{"of unknown age, and a longer grace", false, time.Time{}, 9 * m, 6 * m, 9 * m},
		{"as old as an ADD can be", false, old, 0, 0, 4 * m},
		{"of long ago, and a minimal age", false, noon.Add(-time.Hour), m, 6 * m, 6 * m},
		{"made at noon", false, noon, 0, 0, 4 * m},
		{"adopted", true, time.Time{}, 0, 0, 4 * m},
		{"adopted, and of long ago", true, noon.Add(-24 * time.Hour), 0, 0, 4 * m},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, later, pod := sandboxSituation()
			later.Created, pod.InStatus = time.Time{}, 1
			if tt.adopted {
				a, later, pod = supersededSituation()
			}
			a.Created = tt.created
			s := situation{pools: []ipam.Pool{poolOf(a, later)}, pods: []census.Pod{pod}}
			waits(tt.grace, tt.minAge)(&s)
			s.ripens(t, tt.want)
		})
	}
	// It is forgotten once the pod shows its address: it was that of the ADD in flight.
	older, newer, pod := supersededSituation()
	s := situation{pools: []ipam.Pool{poolOf(older, newer)}, pods: []census.Pod{pod}}
	s.ledger = s.seen(t, noon)
	s.pods = []census.Pod{showing(web, ip1)}
	s.ledger = s.seen(t, noon.Add(time.Minute))
	s.pods = []census.Pod{pod}
	equal(t, "verdict after the pod showed its address", s.judge(t, noon.Add(time.Hour))[0].Verdict, judge.Suspected)
}

// Promise 1, 4. An endpoint has one name on each node. So it is read for one allocation of a pod, and on the
// node of the pod: one that is left on another node says nothing.
func TestEndpointIsReadOnceOnTheNodeOfThePod(t *testing.T) {
	older, newer, pod := laterSandboxSituation()
	pod.Node = "node-1"
	sibling, elsewhere := older, older
	sibling.Key, sibling.IP, sibling.Token = "3", ip3, "t3"
	elsewhere.Key, elsewhere.IP, elsewhere.Token, elsewhere.Owner.Sandbox, elsewhere.Owner.Node = "0", ip(8), "t0", "s0", "node-2"
	elsewhere.Created = older.Created.Add(-time.Hour)
	older.Group, sibling.Group = "g", "g"
	s := situation{pools: []ipam.Pool{poolOf(elsewhere, older, sibling, newer)}, pods: []census.Pod{pod}}
	releaseNow := waits(0, 0)
	releaseNow(&s)
	s.ledger = s.seen(t, noon)
	inv, c := inventory(t, fixedStore(s.pools)), s.census(t)
	for look, asked := range map[string][]*ipam.Allocation{
		"first": judge.ToldByEndpoints(inv, c), "second": judge.ByEndpoints(judge.MakePlan(s.judge(t, noon.Add(time.Hour))).Orphans()),
	} {
		if len(asked) != 1 || asked[0].Owner.Node != "node-1" {
			t.Errorf("the %s look asks for %d endpoints, want that of the node of the pod", look, len(asked))
		}
	}
	equal(t, "orphans", orphans(s.judge(t, noon.Add(time.Hour)), judge.SandboxReplaced), "013")
}
