package judge_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

// booked returns an allocation of a pod that the store has on a node, and the pod, whose status shows it on
// another node.
func booked(ref ipam.PodRef, on, pod string) (ipam.Allocation, census.Pod) {
	a := webAllocation()
	a.Key, a.IP, a.Token = "2", ip2, "t2"
	a.Owner = ipam.Owner{Pod: ref, Sandbox: "s2", Node: on}
	return a, census.Pod{Ref: ref, Node: pod, Addresses: []netip.Addr{ip2}, InStatus: 1, Created: noon.Add(-time.Hour)}
}

// clone has the store know the node n8 as n1: the first allocation, whose pod is gone, is on either.
func clone(s *situation) {
	a, pod := booked(other, "n1", "n8")
	all(onNode1, beside(a), pods(pod), nodes(ready("n1"), notReady("n8")))(s)
}

// remembers has a run that was an hour ago know these meanings.
func remembers(meanings ...ledgertest.Meaning) change {
	return func(s *situation) {
		for i := range meanings {
			meanings[i].Seen = noon.Add(-time.Hour).Unix()
		}
		s.ledger, _ = ledger.Decode(ledgertest.Ledger{Meanings: meanings}.Encode())
	}
}

// n1IsN8 says that the store knows the node n8 as n1.
var n1IsN8 = ledgertest.Meaning{Backend: "fixed", Name: "n1", Node: "n8"}

// Promise 1, 2. A node has the file with the name of another: what its plugin books is under that name.
// The status of a pod that the allocation names shows that, and nothing else does.
func TestNodeThatIsMeantByTheNameOfAnotherIsWaitedFor(t *testing.T) {
	waits := held(judge.NodeUnreachable, "node n8 is not ready, and a pod on n8 had an address that fixed has on node n1")
	its := func(f func(p *census.Pod)) change { return func(s *situation) { f(&s.pods[0]) } }
	entry2 := func(f func(a *ipam.Allocation)) change {
		return func(s *situation) { f(&s.pools[0].Allocations[1]) }
	}
	bookedAt := func(at time.Duration) change { return entry2(func(a *ipam.Allocation) { a.Created = noon.Add(at) }) }
	verdicts(t, clone,
		of("the status shows it", waits),
		of("the pod has ended", waits, its(func(p *census.Pod) { p.Finished = true })),
		of("only an annotation shows it", absent, its(func(p *census.Pod) { p.InStatus = 0 })),
		of("the allocation names another pod, in another network", absent, its(func(p *census.Pod) { p.Ref = dns.Ref })),
		of("the allocation names no pod", absent, entry2(func(a *ipam.Allocation) { a.Owner.Pod = ipam.PodRef{} })),
		of("the pod is on the network of its node", absent, its(func(p *census.Pod) { p.HostNetwork = true })),
		of("the pod is on no node", absent, its(func(p *census.Pod) { p.Node = "" })),
		of("the allocation is not of a pod", absent, entry2(func(a *ipam.Allocation) { a.Foreign = "a tunnel" })),
		of("it is older than the pod, as clocks may differ", waits, bookedAt(-61*time.Minute)),
		of("it is older than the pod", absent, bookedAt(-61*time.Minute-time.Second)),
		of("the pod is a mirror, which has no time", waits, bookedAt(-61*time.Hour), its(func(p *census.Pod) { p.Created = time.Time{} })),
		of("the node is ready", absent, nodes(ready("n1"), ready("n8"))),
		of("the node is fenced", absent, nodes(ready("n1"), tainted(notReady("n8")))),
		of("the node is gone", absent, nodes(ready("n1"))),
		of("the node of that name is fenced", waits, nodes(tainted(notReady("n1")), notReady("n8"))),
		of("the policy says so", absent, terms(func(p *policy.Policy) { p.Nodes.Unreachable = policy.Release })),
	)
}

// Promise 1, 2. The same, where only the ledger knows.
func TestNodeThatWasMeantByTheNameOfAnotherIsWaitedFor(t *testing.T) {
	stays := held(judge.NodeUnreachable, "node n8 is not ready, and a pod on n8 had an address that fixed has on node n1")
	of8 := func(m ledgertest.Meaning) change {
		return all(onNode1, remembers(m), nodes(ready("n1"), notReady("n8")))
	}
	sibling, _ := booked(web, "n1", "")
	sibling.Owner.Sandbox = "s1"
	neighbour, _ := booked(dns.Ref, "n8", "")
	neighbour.Key, neighbour.IP = "3", ip3
	verdicts(t, of8(n1IsN8),
		of("a run saw it", stays),
		of("no node has the name", stays, nodes(notReady("n8"))),
		of("no node has the name, and it may mean one more", nodeUnknown("n3"), nodes(ready("n8"), notReady("n3"))),
		of("the name means another", absent, remembers(ledgertest.Meaning{Backend: "fixed", Name: "n1", Node: "n7"})),
		of("another name means it", absent, remembers(ledgertest.Meaning{Backend: "fixed", Name: "n2", Node: "n8"})),
		of("it is a name of another store", absent, remembers(ledgertest.Meaning{Backend: "calico", Name: "n1", Node: "n8"})),
		of("any name may mean any node", held(judge.NodeUnreachable, "node n8 is not ready, and its store has more other names of nodes than are remembered"),
			remembers(ledgertest.Meaning{Backend: "fixed"})),
		of("the name is from a sibling in a store that has it no more", held(judge.NodeUnreachable, "node n8 is not ready, and a pod on n8 had an address that calico has on node n1"),
			entry(func(a *ipam.Allocation) { a.Owner.Node = "" }), remembers(ledgertest.Meaning{Backend: "calico", Name: "n1", Node: "n8"}),
			beside(sibling)),
		of("no node has the name, and it is from a sibling", nodeUnknown("n3"), entry(func(a *ipam.Allocation) { a.Owner.Node = "" }),
			beside(sibling, neighbour), nodes(ready("n8"), notReady("n3"))),
	)

	// Nor does such a name prove that its node is fenced, whose pods need no time to end.
	elsewhere := census.Pod{Ref: web, Node: "n2", HostNetwork: true, Created: noon.Add(-time.Minute)}
	fencedOr8 := all(onNode1, entry(func(a *ipam.Allocation) { a.Adoption, a.Created = ipam.SandboxOwned, noon.Add(-time.Hour) }),
		pods(elsewhere), nodes(tainted(notReady("n1")), ready("n2"), ready("n8")), waits(0, 0))
	given(fencedOr8).ripens(t, 0)
	given(fencedOr8, remembers(n1IsN8)).ripens(t, 90*time.Second)

	// Nor that two times are by one clock, or that a pod on another node has left its allocation.
	older, newer, pod := sandboxSituation()
	older.Owner.Node, newer.Owner.Node = "n1", "n1"
	shows := pod
	shows.Node = "n8"
	pod.Node, pod.Sandbox, pod.Addresses, pod.InStatus, pod.AddressUnknown, pod.Starting = "n1", "", nil, 0, true, true
	told := func(s *situation) { s.endpoints = map[ipam.PodRef]ipam.Endpoint{web: endpointOf(newer)} }
	moved, waiting := movedSituation()
	in := func(pod census.Pod, as ...ipam.Allocation) change {
		return func(s *situation) {
			s.pools, s.pods, s.nodes = []ipam.Pool{poolOf(as...)}, []census.Pod{pod}, []census.Node{ready("n1"), ready("n2"), ready("n8")}
		}
	}
	verdicts(t, remembers(n1IsN8),
		of("another sandbox", present, in(pod, older, newer), told),
		of("another sandbox, of a name that means nothing else", replaced, in(pod, older, newer), told, remembers()),
		of("another sandbox, in the status, and the endpoint is under that name", present, in(shows, older, newer)),
		of("another node", present, in(waiting, moved)),
		of("another node, of a name that means nothing else", decision{judge.Suspected, judge.PodMoved, "the pod is on node n2"}, in(waiting, moved), remembers()),
	)
}

// Promise 1, 2. A run forgets that a name may mean a node only if nothing under that name can be on the node,
// and the node is gone or has another name by now. Pods show that in their status.
func TestMeaningIsForgottenOnlyWhenItCannotMatter(t *testing.T) {
	repaired, late := booked(ipam.PodRef{Namespace: "default", Name: "late"}, "n8", "n8")
	late.Created = noon.Add(30 * time.Minute)
	here, shown := booked(other, "n1", "n1")
	here.Key, here.IP, here.Token, here.Owner.Sandbox, shown.Addresses = "3", ip3, "t3", "s3", []netip.Addr{ip3}
	again := func(f func(p *census.Pod)) census.Pod {
		p := late
		f(&p)
		return p
	}
	at := func(after time.Duration) census.Pod {
		return again(func(p *census.Pod) { p.Created = noon.Add(after) })
	}
	like := func(f func(a *ipam.Allocation)) ipam.Allocation {
		a := here
		f(&a)
		return a
	}
	n1, n8 := ready("n1"), ready("n8")
	for _, tt := range []struct {
		name  string
		nodes []census.Node
		pods  []census.Pod
		has   []ipam.Allocation
		kept  bool
	}{
		{"nothing has the name", []census.Node{n1, n8}, nil, nil, true},
		{"nothing has the name, and the node is not ready", []census.Node{n1, notReady("n8")}, nil, nil, true},
		{"the node is gone", []census.Node{n1}, nil, nil, false},
		{"the node is gone, and something may be there", []census.Node{n1}, nil, []ipam.Allocation{here}, true},
		{"the node has its own name", []census.Node{n1, n8}, []census.Pod{late}, []ipam.Allocation{repaired}, false},
		{"something may be there", []census.Node{n1, n8}, []census.Pod{late}, []ipam.Allocation{repaired, here}, true},
		{"its pod is elsewhere", []census.Node{n1, n8}, []census.Pod{late, shown}, []ipam.Allocation{repaired, here}, false},
		{"an annotation says that its pod is elsewhere", []census.Node{n1, n8}, []census.Pod{late, {Ref: other, Node: "n1", Addresses: shown.Addresses}}, []ipam.Allocation{repaired, here}, true},
		{"it is of an earlier pod than that elsewhere", []census.Node{n1, n8}, []census.Pod{late, shown},
			[]ipam.Allocation{repaired, like(func(a *ipam.Allocation) { a.Created = noon.Add(-2 * time.Hour) })}, true},
		{"it is a tunnel", []census.Node{n1, n8}, []census.Pod{late}, []ipam.Allocation{repaired, like(func(a *ipam.Allocation) { a.Foreign = "a tunnel" })}, false},
		{"something cannot be read", []census.Node{n1, n8}, []census.Pod{late, shown},
			[]ipam.Allocation{repaired, like(func(a *ipam.Allocation) { a.Unreadable, a.Owner = "no JSON", ipam.Owner{} })}, true},
		{"an annotation says that it has its own name", []census.Node{n1, n8}, []census.Pod{again(func(p *census.Pod) { p.InStatus = 0 })}, []ipam.Allocation{repaired}, true},
		{"a pod from before", []census.Node{n1, n8}, []census.Pod{at(-time.Hour)}, []ipam.Allocation{repaired}, true},
		{"a pod from then, as clocks may differ", []census.Node{n1, n8}, []census.Pod{at(time.Minute)}, []ipam.Allocation{repaired}, true},
		{"a pod from just after", []census.Node{n1, n8}, []census.Pod{at(time.Minute + time.Second)}, []ipam.Allocation{repaired}, false},
		{"an earlier ADD may be under way", []census.Node{n1, n8}, []census.Pod{at(56 * time.Minute)}, []ipam.Allocation{repaired}, true},
	} {
		for _, reads := range []string{"whole", "in part", "not at all"} {
			t.Run(tt.name+", "+reads, func(t *testing.T) {
				a, pod := booked(other, "n1", "n8")
				store := &partStore{namedStore: namedStore{fixedStore{poolOf(a)}, "store"}, unread: map[string]bool{"more": reads == "in part"}}
				w := newSequence(store)
				w.cluster([]census.Pod{pod}, n1, n8)
				w.run(t)
				want := []ledger.Meaning{{Backend: "store", Name: "n1", Node: "n8", Seen: noon.Unix()}}
				equal(t, "learned", w.ledger.Meanings, want)
				store.fixedStore, store.fails = fixedStore{poolOf(tt.has...), {Name: "more"}}, reads == "not at all"
				w.cluster(tt.pods, tt.nodes...)
				w.now = w.now.Add(time.Hour)
				w.run(t)
				if !tt.kept && reads == "whole" {
					want = nil
				}
				equal(t, "remembered", slices.Clip(w.ledger.Meanings), want)
			})
		}
	}
}

// Promise 1. node-8 has the file of node-1. A run sees a pod of node-8 by the name of node-1; that ends. A
// later pod, which no run saw, runs on after node-8 was cut off and its pod was deleted by force. An hour
// and many runs later, its address is kept; and goes once node-8 is fenced.
func TestAddressOfANodeWithTheNameOfAnotherIsKeptWithoutATrace(t *testing.T) {
	w := newSequence(fixedStore{})
	a, pod := booked(other, "n1", "n8")
	w.backends[0] = fixedStore{poolOf(a)}
	w.cluster([]census.Pod{pod}, ready("n1"), ready("n8"))
	w.run(t)
	w.backends[0] = fixedStore{}
	w.cluster(nil, ready("n1"), ready("n8"))
	w.run(t)
	a, _ = booked(web, "n1", "")
	a.Adoption, a.Created = ipam.SandboxOwned, w.now
	w.backends[0] = fixedStore{poolOf(a)}
	w.cluster(nil, ready("n1"), notReady("n8"))
	for range 5 {
		w.now = w.now.Add(15 * time.Minute)
		kept(t, "cut off", w.entryIn(t, "fixed"))
	}
	w.cluster(nil, ready("n1"), tainted(notReady("n8")))
	for range 2 {
		w.run(t)
		w.now = w.now.Add(15 * time.Minute)
	}
	goes(t, "fenced", w.entryIn(t, "fixed"))
}

// Promise 1. The name that an allocation has from a sibling is remembered as where its pod was. That is no
// sign that a run saw the pod there, and a claim in an annotation does not replace it while the node that it may mean
// is away.
func TestNameOfASiblingIsNoPlaceWhereAPodWasSeen(t *testing.T) {
	sibling, _ := booked(web, "n1", "")
	sibling.Owner.Sandbox = "s1"
	neighbour, _ := booked(other, "n2", "")
	neighbour.Key, neighbour.IP = "3", ip3
	claims := showing(web, ip1)
	claims.Node = "n2"
	calico := ledgertest.Meaning{Backend: "calico", Name: "n1", Node: "n8"}
	for _, tt := range []struct {
		name  string
		nodes []census.Node
		note  string
	}{
		{"no node has the name", []census.Node{ready("n2"), ready("n8"), notReady("n3")}, "its node is unknown, and these are not ready: n3"},
		{"a node has it", []census.Node{ready("n1"), ready("n2"), notReady("n8")}, "node n8 is not ready, and a pod on n8 had an address that calico has on node n1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newSequence(namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"}, namedStore{fixedStore{poolOf(sibling, neighbour)}, "calico"})
			w.ledger = given(remembers(calico)).ledger
			w.cluster(nil, tt.nodes...)
			w.run(t)
			equal(t, "note", w.entryIn(t, "whereabouts").Note, tt.note)
			w.backends[1] = namedStore{fixedStore{poolOf(neighbour)}, "calico"}
			if tt.nodes[0].Name == "n1" {
				w.cluster([]census.Pod{claims}, tt.nodes...)
				w.run(t)
				w.cluster(nil, tt.nodes...)
			}
			equal(t, "note without the sibling", w.entryIn(t, "whereabouts").Note, tt.note)
		})
	}
}

// Promise 1. A run that does not believe its list of pods saves what their statuses show. What the names of
// nodes prove needs no memory.
func TestMeaningIsSavedByARunThatIsRefused(t *testing.T) {
	s := given(clone)
	saved := func(s situation) []ledger.Meaning {
		v := judge.Decide(noon, s.terms(), inventory(t, fixedStore(s.pools)), s.census(t), s.ledger, false)
		return judge.WithHung(s.ledger, v).Meanings
	}
	equal(t, "saved", saved(s), []ledger.Meaning{{Backend: "fixed", Name: "n1", Node: "n8", Seen: noon.Unix()}})
	s.pools[0].Allocations[1].Owner.Node = "n8.corp.example"
	equal(t, "saved of a name with a domain", saved(s), nil)
}
