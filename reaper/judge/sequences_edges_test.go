package judge_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// inFlight is the longest time from an ADD to the address in the pod's status.
const inFlight = 4 * time.Minute

// tainted returns the node with the taint out-of-service.
func tainted(n census.Node) census.Node {
	n.OutOfService = true
	return n
}

// Promise 1. The sandbox of a pod cannot be stopped, so the pod hangs on a ready node until it
// is force-deleted. The sandbox still runs, until its node is rebooted.
func TestPodThatCouldNotBeEndedKeepsItsAddress(t *testing.T) {
	type nodes = []census.Node
	for _, tt := range []struct {
		name  string
		pod   func(*census.Pod)
		first census.Node // while the pod hangs
		later nodes
		keeps bool
	}{
		{"it hung", nil, booted("b1"), nodes{booted("b1")}, true},
		{"a pod of that name is on another node", nil, booted("b1"), nodes{booted("b1"), ready("n2")}, true},
		{"its node does not tell its boot", nil, booted(""), nodes{booted("")}, true},
		{"its node did not tell its boot", nil, booted(""), nodes{booted("b2")}, true},
		{"its node tells its boot no more", nil, booted("b1"), nodes{booted("")}, true},
		{"its node was started anew", nil, booted("b1"), nodes{booted("b2")}, false},
		{"its node is fenced", nil, booted("b1"), nodes{{Name: "n1", Boot: "b1", OutOfService: true}}, false},
		{"its node is ready, and still has the taint", nil, booted("b1"), nodes{tainted(booted("b1"))}, true},
		{"its node is gone", nil, booted("b1"), nodes{ready("n2")}, false},
		{"it ends within a minute", func(p *census.Pod) { p.Deadline = noon.Add(-time.Minute) }, booted("b1"), nodes{booted("b1")}, false},
		{"it is not deleted", func(p *census.Pod) { p.Deadline = time.Time{} }, booted("b1"), nodes{booted("b1")}, false},
		{"its kubelet has ended it", func(p *census.Pod) { p.Finished = true }, booted("b1"), nodes{booted("b1")}, false},
		{"it hung while its node was not ready", nil, census.Node{Name: "n1", Boot: "b1"}, nodes{booted("b1")}, false},
		{"its node is back since a minute", nil, census.Node{Name: "n1", Ready: true, Boot: "b1", Since: noon.Add(-time.Minute)}, nodes{booted("b1")}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := hanging()
			if tt.pod != nil {
				tt.pod(&pod)
			}
			for _, stuck := range []policy.Disposition{policy.Hold, policy.Release} {
				w := newSequence(
					namedStore{fixedStore{poolOf(calicoOf("n1"))}, "calico"},
					namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"})
				w.policy.Pods.Stuck = stuck
				w.cluster([]census.Pod{pod}, tt.first)
				w.run(t)
				for range 3 { // the second one forgets nothing
					w.now = w.now.Add(time.Hour)
					w.cluster(nil, tt.later...)
					w.run(t)
				}
				for _, e := range w.run(t) {
					keeps := tt.keeps && stuck == policy.Hold
					if (e.Verdict == judge.Held) != keeps || keeps != (e.Reason == judge.TerminationStuck) {
						t.Errorf("%s with stuck: %s: %s %s (%s)", e.Allocation.Backend, stuck, e.Verdict, e.Reason, e.Note)
					}
				}
			}
		})
	}
}

// Promise 1. The status of a pod that hangs has the address of an allocation that names another pod. An
// annotation of a third one, true or not, changes nothing.
func TestAnnotationOfAnotherPodDoesNotHideAPodThatHangs(t *testing.T) {
	hung := hanging()
	hung.Ref = other
	for name, claims := range map[string][]census.Pod{"no annotation": {hung}, "an annotation": {showing(ipam.PodRef{Namespace: "x", Name: "y"}, ip2), hung}} {
		w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1"))}, "calico"})
		w.cluster(claims, booted("b1"))
		equal(t, "while it hangs, with "+name, w.entryIn(t, "calico").Verdict, judge.InUse)
		w.now = w.now.Add(time.Hour)
		w.cluster(nil, booted("b1"))
		equal(t, "after it, with "+name, w.entryIn(t, "calico").Reason, judge.TerminationStuck)
	}
}

// Promise 1. Another pod that shows the address, and goes again, does not end the hold of a pod that
// hung, or of a static pod: their node has not been rebooted.
func TestAnotherPodDoesNotEndTheHoldOfAHungPod(t *testing.T) {
	for _, mirror := range []bool{false, true} {
		for _, annotated := range []bool{false, true} {
			store := poolOf(calicoOf(""))
			store.Network = "wb"
			store.Allocations[0].Adoption, store.Allocations[0].Group = ipam.Adoptable, ""
			w := newSequence(namedStore{fixedStore{store}, "store"})
			w.policy.Pods.Finished = policy.Release
			first, want := hanging(), judge.TerminationStuck
			if mirror {
				first, want = mirrored(), judge.StaticPod
			}
			n1, n2 := booted("b1"), booted("c1")
			n2.Name = "n2"
			w.cluster([]census.Pod{first}, n1, n2)
			w.entryIn(t, "store")
			later := showing(other, ip2)
			later.InStatus, later.Node, later.Interfaces, later.Mirror = 1, "n2", nil, mirror
			pods := []census.Pod{later}
			if annotated {
				pods = []census.Pod{showing(ipam.PodRef{Namespace: "x", Name: "y"}, ip2), later}
			}
			w.now = w.now.Add(time.Minute)
			w.cluster(pods, n1, n2)
			equal(t, "while another pod shows the address", w.entryIn(t, "store").Reason, judge.AddressInUse)
			n2.Boot = "c2"
			for range 2 {
				w.now = w.now.Add(time.Hour)
				w.cluster(nil, n1, n2)
				equal(t, fmt.Sprintf("after it, mirror %t, annotated %t", mirror, annotated), w.entryIn(t, "store").Reason, want)
			}
		}
	}
}

// A pod that hung is remembered while its node is away, and forgotten when its kubelet says
// that it has ended: but not when the collector of the pods of deleted nodes does.
func TestPodHangsUntilItsKubeletHasEndedIt(t *testing.T) {
	away := booted("b1")
	away.Ready, away.Since = false, noon
	ended, later, claims := finished(hanging()), waiting(0), hanging()
	later.Finished, later.AddressUnknown, later.Starting = true, false, false
	elsewhere := finished(hanging())
	elsewhere.Node, elsewhere.Addresses, elsewhere.InStatus = "n2", nil, 0
	claims.Deadline, claims.InStatus, claims.Ref = time.Time{}, 0, other
	for _, tt := range []struct {
		name  string
		pod   census.Pod
		nodes []census.Node
		want  judge.Reason
	}{
		{"its node is away", hanging(), []census.Node{away}, judge.TerminationStuck},
		{"it has ended", ended, []census.Node{booted("b1")}, judge.PodAbsent},
		{"a later pod of its name has ended", later, []census.Node{booted("b1")}, judge.TerminationStuck},
		{"a later pod of its name ends on another node", elsewhere, []census.Node{booted("b1"), ready("n2")}, judge.TerminationStuck},
		{"another pod claims its address", claims, []census.Node{booted("b1")}, judge.TerminationStuck},
		{"its node was started anew, and it hangs", hanging(), []census.Node{booted("b0")}, judge.TerminationStuck},
		{"it was collected", ended, []census.Node{ready("n2")}, judge.TerminationStuck},
		{"it was collected, and its node is back with the taint", ended, []census.Node{tainted(booted("b1"))}, judge.TerminationStuck},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1"))}, "calico"})
			w.cluster([]census.Pod{hanging()}, booted("b1"))
			w.run(t)
			w.cluster([]census.Pod{tt.pod}, tt.nodes...)
			w.run(t)
			w.now = w.now.Add(time.Hour)
			w.cluster(nil, booted("b1"))
			equal(t, "reason", w.entryIn(t, "calico").Reason, tt.want)
		})
	}
}

// The owner of a pod that hangs may claim any address. That of another pod is leaked, and goes.
func TestPodThatHangsKeepsNoAddressThatItClaims(t *testing.T) {
	leak := calicoOf("n1")
	leak.Owner.Pod = other
	claims := hanging()
	claims.InStatus = 0
	w := newSequence(namedStore{fixedStore{poolOf(leak)}, "calico"})
	w.cluster([]census.Pod{claims}, booted("b1"))
	equal(t, "reason while it is claimed", w.entryIn(t, "calico").Reason, judge.AddressInUse)
	w.cluster(nil, booted("b1"))
	w.run(t)
	w.now = w.now.Add(time.Hour)
	goes(t, "after that", w.entryIn(t, "calico"))
}

// Promise 1. Calico's name for the node is outdated: no node has it, or another one does. A run
// saw the pod on its node, which is cut off; then the pod is force-deleted.
func TestNodeOnWhichAPodWasSeenCountsBesideThatOfTheStore(t *testing.T) {
	for _, stale := range []string{"n1-calico", "n2"} {
		w := newSequence(namedStore{fixedStore{poolOf(calicoOf(stale))}, "calico"})
		pod := showing(web, ip2)
		pod.Node, pod.InStatus = "n1", 1
		w.cluster([]census.Pod{pod}, ready("n1"), ready("n2"))
		w.run(t)
		for range 3 {
			w.now = w.now.Add(30 * time.Minute)
			w.cluster(nil, notReady("n1"), ready("n2"))
			equal(t, "reason with the name "+stale, w.entryIn(t, "calico").Reason, judge.NodeUnreachable)
		}
	}
}

// tries returns an allocation of Calico on n1 for each age, of sandboxes s1, s2, ...
func tries(ages ...time.Duration) []ipam.Allocation {
	var all []ipam.Allocation
	for i, age := range ages {
		a := calicoOf("n1")
		id := string(rune('1' + i))
		a.Key, a.Token, a.Group, a.Owner.Sandbox, a.Created = id, "t"+id, "handle-s"+id, "s"+id, noon.Add(-age)
		for range i {
			a.IP = a.IP.Next()
		}
		all = append(all, a)
	}
	return all
}

// waiting returns a pod on n1 that waits for its address.
func waiting(age time.Duration) census.Pod {
	return census.Pod{Ref: web, UID: "u", Node: "n1", Created: noon.Add(-age), Started: noon.Add(-age), AddressUnknown: true, Starting: true}
}

// Promise 1, 2. Each attempt to make a sandbox leaks an address. While the pod shows none, only its endpoint
// tells which sandbox is the last one, and the times must agree: the clock of a node may be set back.
func TestTryOfAPodThatWaitsGoesOnlyIfTheEndpointHasALaterOne(t *testing.T) {
	of := func(sandbox string, address byte) func(*ipam.Endpoint) {
		return func(e *ipam.Endpoint) { e.Sandbox, e.Addresses = sandbox, []netip.Addr{ip(address)} }
	}
	inPod := func(e *ipam.Endpoint) { *e = ipam.Endpoint{InPod: true} }
	annotated := func(sandbox string, address byte) func(*census.Pod) {
		return func(p *census.Pod) { p.Sandbox, p.Addresses = sandbox, []netip.Addr{ip(address)} }
	}
	change := func(change func(a *ipam.Allocation)) []ipam.Allocation {
		two := tries(time.Hour, 30*time.Minute)
		change(&two[1])
		return two
	}
	for _, tt := range []struct {
		name     string
		as       []ipam.Allocation
		pod      func(*census.Pod)
		node     census.Node
		endpoint func(*ipam.Endpoint) // of the last one, if that is nil
		goes     string               // the keys, of those that go after the grace period
	}{
		{"three tries", tries(time.Hour, 40*time.Minute, 20*time.Minute), nil, ready("n1"), nil, "12"},
		{"it has the second of three", tries(time.Hour, 40*time.Minute, 20*time.Minute), nil, ready("n1"), of("s2", 3), "1"},
		{"one try", tries(time.Hour), nil, ready("n1"), nil, ""},
		{"the clock was set back between two", tries(30*time.Minute, time.Hour), nil, ready("n1"), nil, ""},
		{"it was set back, and the ADD has not written it yet", tries(30*time.Minute, time.Hour), nil, ready("n1"), func(e *ipam.Endpoint) { *e = ipam.Endpoint{} }, ""},
		{"there is none", tries(time.Hour, 30*time.Minute), nil, ready("n1"), func(e *ipam.Endpoint) { *e = ipam.Endpoint{} }, ""},
		{"it could not be read", tries(time.Hour, 30*time.Minute), nil, ready("n1"), func(e *ipam.Endpoint) { e.Err = errForbidden }, ""},
		{"it is of a third sandbox", tries(time.Hour, 30*time.Minute), nil, ready("n1"), of("s9", 9), ""},
		{"it is of a third sandbox, with the address", tries(time.Hour, 30*time.Minute), nil, ready("n1"), of("s9", 3), ""},
		{"it is of the sandbox, with another address", tries(time.Hour, 30*time.Minute), nil, ready("n1"), of("s2", 9), ""},
		{"it is of the sandbox, with the address of the first", tries(time.Hour, 30*time.Minute), nil, ready("n1"), of("s2", 2), ""},
		{"it is of the first", tries(time.Hour, 30*time.Minute), nil, ready("n1"), of("s1", 2), ""},
		{"its node is not ready", tries(time.Hour, 30*time.Minute), nil, notReady("n1"), nil, ""},
		{"the pod is up", tries(time.Hour, 30*time.Minute), func(p *census.Pod) {
			*p = showing(web, ip1)
			p.Node, p.InStatus = "n1", 1
		}, ready("n1"), nil, ""},
		{"the pod shows the first", tries(time.Hour, 30*time.Minute), func(p *census.Pod) { p.Sandbox = "s1" }, ready("n1"), nil, ""},
		{"the pod stands for it, and has three tries", tries(time.Hour, 40*time.Minute, 20*time.Minute), annotated("s3", 4), ready("n1"), inPod, "12"},
		{"the pod stands for it, and the clock was set back", tries(30*time.Minute, time.Hour), annotated("s2", 3), ready("n1"), inPod, ""},
		{"the pod stands for it, and has no annotations", tries(time.Hour, 30*time.Minute), nil, ready("n1"), inPod, ""},
		{"the pod stands for it, and names a sandbox only", tries(time.Hour, 30*time.Minute), annotated("s2", 9), ready("n1"), inPod, ""},
		{"the pod stands for it, and has an address only", tries(time.Hour, 30*time.Minute), annotated("", 3), ready("n1"), inPod, ""},
		{"the pod has annotations, but a store has the endpoint", tries(time.Hour, 30*time.Minute), annotated("s2", 3), ready("n1"), func(e *ipam.Endpoint) { *e = ipam.Endpoint{} }, ""},
		{"neither the pod nor the last names a sandbox", change(func(a *ipam.Allocation) { a.Owner.Sandbox = "" }), annotated("", 3), ready("n1"), inPod, ""},
		{"the last has no time", change(func(a *ipam.Allocation) { a.Created = time.Time{} }), nil, ready("n1"), nil, ""},
		{"the last is of the future", change(func(a *ipam.Allocation) { a.Created = noon.Add(24 * time.Hour) }), nil, ready("n1"), nil, ""},
		{"the last is on another node", change(func(a *ipam.Allocation) { a.Owner.Node = "n9" }), nil, ready("n1"), nil, ""},
		{"both are of one sandbox", change(func(a *ipam.Allocation) { a.Owner.Sandbox = "s1" }), nil, ready("n1"), nil, ""},
		{"sandboxes adopt allocations", change(func(a *ipam.Allocation) { a.Adoption = ipam.NeverAdopted }), nil, ready("n1"), nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod, endpoint := waiting(2*time.Hour), endpointOf(tt.as[len(tt.as)-1])
			if tt.pod != nil {
				tt.pod(&pod)
			}
			if tt.endpoint != nil {
				tt.endpoint(&endpoint)
			}
			w := newSequence(namedStore{fixedStore{poolOf(tt.as...)}, "calico"})
			w.cluster([]census.Pod{pod}, tt.node)
			w.endpoints = map[ipam.PodRef]ipam.Endpoint{web: endpoint}
			w.run(t)
			w.now = w.now.Add(15 * time.Minute)
			equal(t, "keys that go", orphans(w.run(t), judge.SandboxReplaced), tt.goes)
		})
	}
}

// orphans returns the keys of the orphans of a reason, joined.
func orphans(decisions []judge.Decision, reason judge.Reason) string {
	var keys string
	for _, d := range decisions {
		if d.Verdict == judge.Orphaned && d.Reason == reason {
			keys += d.Allocation.Key
		}
	}
	return keys
}

// Promise 1. A pod is made again under its name, and waits: what is older is of an earlier pod,
// if no sandbox adopts the allocation of another. A slow clock makes the pod's own allocation
// look old, but the start of the pod as well; and it waits for an ADD.
func TestAllocationThatIsOlderThanItsPodIsOfAnEarlierOne(t *testing.T) {
	const age = time.Hour
	for _, tt := range []struct {
		name string
		a    func(*ipam.Allocation)
		pod  func(*census.Pod)
		node census.Node
		goes string
	}{
		{"older", nil, nil, ready("n1"), "1"},
		{"the pod is on no node yet", nil, func(p *census.Pod) { p.Node, p.AddressUnknown, p.Starting, p.Started = "", false, false, time.Time{} }, ready("n1"), "1"},
		{"the clock of the node is slow", nil, func(p *census.Pod) { p.Started = noon.Add(-age - time.Second) }, ready("n1"), ""},
		{"the kubelet does not say when the pod started", nil, func(p *census.Pod) { p.Started = time.Time{} }, ready("n1"), ""},
		{"older by what clocks may differ", nil, func(p *census.Pod) { p.Created = noon.Add(inFlight - age) }, ready("n1"), ""},
		{"younger", nil, func(p *census.Pod) { p.Created = noon.Add(-2 * age) }, ready("n1"), ""},
		{"the mirror of a static pod", nil, func(p *census.Pod) { p.Created = time.Time{} }, ready("n1"), ""},
		{"without a time", func(a *ipam.Allocation) { a.Created = time.Time{} }, nil, ready("n1"), ""},
		{"sandboxes adopt allocations", func(a *ipam.Allocation) { a.Adoption = ipam.Adoptable }, nil, ready("n1"), ""},
		{"the pod is on a node that is not ready", func(a *ipam.Allocation) { a.Owner.Node = "n2" }, nil, notReady("n1"), ""},
		{"the pod hides an address", nil, func(p *census.Pod) { p.Starting = false }, ready("n1"), ""},
		{"the pod shows it", nil, func(p *census.Pod) { p.Addresses = append(p.Addresses, ip2) }, ready("n1"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			as, pod := tries(age), waiting(age/2)
			if tt.a != nil {
				tt.a(&as[0])
			}
			if tt.pod != nil {
				tt.pod(&pod)
			}
			w := newSequence(namedStore{fixedStore{poolOf(as...)}, "calico"})
			zero := policy.Duration{}
			w.policy.GracePeriod, w.policy.MinAge = &zero, &zero
			w.cluster([]census.Pod{pod}, tt.node, ready("n2"))
			w.run(t)
			w.now = noon.Add(inFlight - time.Second)
			equal(t, "goes before an ADD can be over", orphans(w.run(t), judge.PodReplaced), "")
			w.now = noon.Add(inFlight)
			equal(t, "goes", orphans(w.run(t), judge.PodReplaced), tt.goes)
		})
	}
}

// Promise 1. No run saw the earlier pod, which runs on n1. A later one of its name, on n2, claims
// its address in an annotation, and the store has the address of its status for another sandbox:
// so the claim names no node.
func TestClaimOfAnotherSandboxTellsNoNode(t *testing.T) {
	heir := showing(web, ip9, ip1)
	heir.Node, heir.InStatus, heir.TerminationGrace = "n2", 1, 30*time.Second
	primary := calicoOf("n2")
	primary.IP, primary.Owner.Sandbox, primary.Group = ip9, "s2", "handle-s2"
	w := newSequence(
		namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"},
		namedStore{fixedStore{poolOf(primary)}, "calico"})
	w.cluster([]census.Pod{heir}, notReady("n1"), ready("n2"))
	w.run(t)
	w.now = w.now.Add(30 * time.Minute)
	w.cluster(nil, notReady("n1"), ready("n2"))
	e := w.entryIn(t, "whereabouts")
	equal(t, "verdict", decisionOf(e), nodeUnknown("n1"))
}

// Promise 1. The same, where all that is left of the earlier pod is the name by which Calico knew its
// node.
func TestClaimDoesNotReplaceANodeOfAnotherName(t *testing.T) {
	primary, neighbour := calicoOf("n1.corp.example"), calicoOf("n2")
	neighbour.Key, neighbour.IP, neighbour.Token, neighbour.Group = "9", ip9, "c9", "handle-s9"
	neighbour.Owner.Pod, neighbour.Owner.Sandbox = other, "s9"
	w := newSequence(
		namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"},
		namedStore{fixedStore{poolOf(primary, neighbour)}, "calico"})
	w.cluster(nil, notReady("n1"), ready("n2"))
	w.run(t)
	w.backends[1] = namedStore{fixedStore{poolOf(neighbour)}, "calico"}
	claims := showing(web, ip1)
	claims.Node, claims.InStatus = "n2", 0
	w.cluster([]census.Pod{claims}, notReady("n1"), ready("n2"))
	w.run(t)
	w.cluster(nil, notReady("n1"), ready("n2"))
	equal(t, "note", w.entryIn(t, "whereabouts").Note, "node n1 is not ready, and may be its node by another name")
}

// Promise 1. The node of a pod that would take a day to end is fenced. Or its object is deleted: then
// the machine may still run, and its kubelet gets an hour. If it is ready, it is not fenced, whatever
// its taints, and gets the day.
func TestNodeThatIsOffNeedsLittleTimeToEndItsPods(t *testing.T) {
	for name, tt := range map[string]struct {
		nodes []census.Node
		after time.Duration
	}{
		"fenced":                   {[]census.Node{{Name: "n1", OutOfService: true}, ready("n2")}, 15 * time.Minute},
		"gone":                     {[]census.Node{ready("n2")}, 61 * time.Minute},
		"ready, and still tainted": {[]census.Node{tainted(ready("n1")), ready("n2")}, 24*time.Hour + time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1"))}, "calico"})
			pod := showing(web, ip2)
			pod.Node, pod.Sandbox, pod.TerminationGrace = "n1", "s1", 24*time.Hour
			w.cluster([]census.Pod{pod}, ready("n1"), ready("n2"))
			w.run(t)
			w.cluster(nil, tt.nodes...)
			w.run(t)
			w.now = w.now.Add(tt.after - time.Minute)
			kept(t, "a minute before", w.entryIn(t, "calico"))
			w.now = w.now.Add(time.Minute)
			goes(t, "in time", w.entryIn(t, "calico"))
		})
	}
}

// Promise 1. The pod may take a day to end. While its allocation cannot be read, such as because
// another object of its store is broken, no run forgets that.
func TestUnreadableAllocationKeepsTheTimeThatItsPodMayTakeToEnd(t *testing.T) {
	store := fixedStore{poolOf(calicoOf("n1"))}
	w := newSequence(namedStore{store, "calico"})
	pod := showing(web, ip2)
	pod.Node, pod.Sandbox, pod.TerminationGrace = "n1", "s1", 24*time.Hour
	w.cluster([]census.Pod{pod}, ready("n1"))
	w.run(t)
	w.cluster(nil, ready("n1"))
	w.run(t)
	store[0].Allocations[0].Unreadable = "its handle cannot be read"
	w.run(t)
	equal(t, "reason", w.entryIn(t, "calico").Reason, judge.Unreadable)
	store[0].Allocations[0].Unreadable = ""
	w.run(t)
	w.now = w.now.Add(24 * time.Hour)
	kept(t, "a minute before", w.entryIn(t, "calico"))
	w.now = w.now.Add(time.Minute)
	goes(t, "in time", w.entryIn(t, "calico"))
}

// Promise 1. The pod hangs only while its allocation cannot be read. No run forgets that.
func TestPodThatHangsWhileItsAllocationIsUnreadableIsRemembered(t *testing.T) {
	store := fixedStore{poolOf(calicoOf("n1"))}
	w := newSequence(namedStore{store, "calico"})
	running := hanging()
	running.Deadline = time.Time{}
	w.cluster([]census.Pod{running}, booted("b1"))
	w.run(t)
	store[0].Allocations[0].Unreadable = "its handle cannot be read"
	w.cluster([]census.Pod{hanging()}, booted("b1"))
	w.run(t)
	store[0].Allocations[0].Unreadable = ""
	w.cluster(nil, booted("b1")) // deleted by force
	for range 3 {
		equal(t, "reason", w.entryIn(t, "calico").Reason, judge.TerminationStuck)
		w.now = w.now.Add(24 * time.Hour)
	}
}

// Promise 1. An allocation names only a sandbox, whose pod another store names. While that store cannot
// be read, nobody knows whose it is, and how long that pod may take to end.
func TestAllocationThatNamesOnlyASandboxIsKeptWhileAStoreCannotBeRead(t *testing.T) {
	nameless := calicoOf("n1")
	nameless.Owner.Pod, nameless.Group, nameless.IP = ipam.PodRef{}, "", ip1
	other := &partStore{namedStore: namedStore{fixedStore{poolOf(calicoOf("n1"))}, "other"}}
	w := newSequence(namedStore{fixedStore{poolOf(nameless)}, "calico"}, other)
	w.policy.Pods.Unnamed = policy.Release
	pod := hanging()
	pod.Deadline, pod.TerminationGrace = time.Time{}, 24*time.Hour
	w.cluster([]census.Pod{pod}, ready("n1"))
	w.run(t)
	w.cluster(nil, ready("n1"))
	w.run(t)
	for _, fails := range []bool{true, false} {
		other.fails = fails
		w.now = w.now.Add(10 * time.Hour)
		kept(t, fmt.Sprintf("the other store fails: %v", fails), w.entryIn(t, "calico"))
	}
	w.now = w.now.Add(25 * time.Hour)
	goes(t, "in time", w.entryIn(t, "calico"))
}

// Nodes that join, or are ready again, all the time or now and then, hold no older allocation for
// ever.
func TestNodesThatComeAndGoDoNotHoldForEver(t *testing.T) {
	joins := func(now time.Time) census.Node {
		return census.Node{Name: "n9", Created: now.Add(-20 * time.Second), Since: now.Add(-20 * time.Second)}
	}
	back := func(now time.Time) census.Node {
		return census.Node{Name: "n9", Ready: true, Since: now.Add(-2 * time.Minute)}
	}
	for name, tt := range map[string]struct {
		every int // how often, in runs
		node  func(now time.Time) census.Node
	}{"a node joins before each run": {1, joins}, "before each second run": {2, joins}, "a node is ready again": {1, back}} {
		w := newSequence(namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"})
		w.policy.GracePeriod = &policy.Duration{Duration: 30 * time.Minute}
		var e judge.Decision
		for n := range 96 {
			w.now = w.now.Add(15 * time.Minute)
			w.cluster(nil, ready("n1"))
			if n%tt.every == 0 {
				w.cluster(nil, ready("n1"), tt.node(w.now))
			}
			if e = w.entryIn(t, "whereabouts"); e.Verdict == judge.Orphaned {
				break
			}
		}
		goes(t, "after a day, "+name, e)
	}
}
