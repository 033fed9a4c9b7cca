package reaper_test

import (
	"context"
	"iter"
	"net/netip"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// A namedStore is a fixedStore with a name of its own.
type namedStore struct {
	fixedStore
	name string
}

func (s namedStore) Name() string { return s.name }

// sequence is a cluster of several stores, whose state tests change between runs.
type sequence struct {
	policy policy.Policy
	stores []namedStore
	pods   *backendtest.Pods
	ledger *memoryLedgers
	now    time.Time
}

func newSequence(stores ...namedStore) *sequence {
	w := &sequence{policy: policy.Default(), stores: stores, pods: &backendtest.Pods{}, ledger: &memoryLedgers{}, now: noon}
	w.policy.DryRun = new(bool)
	one := 1.0
	w.policy.Limits.MaxFraction = &one
	w.pods.Add(reaper.Pod{Ref: reaper.PodRef{Namespace: "kube-system", Name: "dns"}})
	return w
}

// setNodes replaces the nodes, and keeps the pods.
func (w *sequence) cluster(pods []reaper.Pod, nodes ...reaper.Node) {
	w.pods = &backendtest.Pods{}
	w.pods.Add(reaper.Pod{Ref: reaper.PodRef{Namespace: "kube-system", Name: "dns"}})
	w.pods.Add(pods...)
	w.pods.AddNodes(nodes...)
}

func (w *sequence) run(t *testing.T) reaper.Report {
	t.Helper()
	h := newHarness()
	for _, s := range w.stores {
		h.backends = append(h.backends, s)
	}
	h.policy, h.pods, h.ledgers, h.now = w.policy, w.pods, w.ledger, w.now
	r, err := reaper.Run(t.Context(), h.options())
	if err != nil {
		t.Logf("run: %v", err)
	}
	return r
}

func (w *sequence) entry(t *testing.T, backend string) reaper.Entry {
	t.Helper()
	for _, e := range w.run(t).Entries {
		if e.Backend == backend {
			return e
		}
	}
	t.Fatal("no entry of " + backend)
	return reaper.Entry{}
}

func kept(t *testing.T, what string, e reaper.Entry) {
	t.Helper()
	if e.Verdict == reaper.Orphaned {
		t.Errorf("%s: %s %s (%s), first seen %v", what, e.Verdict, e.Reason, e.Note, e.FirstSeen)
	} else {
		t.Logf("%s: %s %s (%s)", what, e.Verdict, e.Reason, e.Note)
	}
}

func calicoOf(node string) reaper.Allocation {
	return reaper.Allocation{
		Key: "7", IP: ip2, Token: "c1", Group: "handle-s1", SandboxOwned: true, NeverAdopted: true, Created: noon.Add(-time.Hour),
		Owner: reaper.Owner{Pod: web, Sandbox: "s1", Node: node},
	}
}

// 1. The pod shows its address on n1, and a run sees it. Then n1 is cut off, and the pod is
// deleted by force. It still runs. Calico names another node for the sandbox.
func TestNodeOfCalicoDoesNotReplaceThatOfThePod(t *testing.T) {
	for _, tt := range []struct {
		name, backend, calicoNode string
		other                     string // a node that is ready
		shows                     []netip.Addr
		sandbox                   string // that the pod shows
	}{
		{"Kubernetes does not know the node of that name", "whereabouts", "n1-calico", "n2", []netip.Addr{ip1, ip2}, "s1"},
		{"the sandbox of the store is outdated, and leaked on that node", "overlapping", "nold", "nold", []netip.Addr{ip1}, "s2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newSequence(
				namedStore{fixedStore{poolOf(webAllocation())}, tt.backend},
				namedStore{fixedStore{poolOf(calicoOf(tt.calicoNode))}, "calico"})
			pod := showing(web, tt.shows...)
			pod.Node, pod.Sandbox = "n1", tt.sandbox
			w.cluster([]reaper.Pod{pod}, ready("n1"), ready(tt.other))
			w.run(t)
			for range 3 {
				w.now = w.now.Add(30 * time.Minute)
				w.cluster(nil, notReady("n1"), ready(tt.other))
				kept(t, tt.backend, w.entry(t, tt.backend))
			}
		})
	}
}

// 1c. The ledger is lost, and the store names a node that Kubernetes does not know. n1 is
// cut off: it may be that one.
func TestNodeThatKubernetesDoesNotKnowIsNotKnown(t *testing.T) {
	w := newSequence(
		namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"},
		namedStore{fixedStore{poolOf(calicoOf("n1-calico"))}, "calico"})
	w.cluster(nil, notReady("n1"), ready("n2"))
	w.run(t)
	w.now = w.now.Add(30 * time.Minute)
	kept(t, "whereabouts", w.entry(t, "whereabouts"))
}

// 2. Calico names n2 as Kubernetes does, and n1 otherwise (a node that was named by hand).
// The pod runs on n1, and its network-status cannot be read.
func TestPodIsNotMovedIfOnlyOtherNodesHaveTheSameName(t *testing.T) {
	on2 := calicoOf("n2")
	on2.Key, on2.IP, on2.Group, on2.Owner = "8", ip1, "handle-s9", reaper.Owner{Pod: other, Sandbox: "s9", Node: "n2"}
	w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1-calico"), on2)}, "calico"})
	pod2 := showing(other, ip1)
	pod2.Node = "n2"
	w.cluster([]reaper.Pod{{Ref: web, Node: "n1", AddressUnknown: true}, pod2}, ready("n1"), ready("n2"))
	w.run(t)
	w.now = w.now.Add(30 * time.Minute)
	kept(t, "calico", w.entry(t, "calico"))
}

// 3. A store whose entries do not change when a pod adopts them (overlapping). The time is
// kept while the entry cannot be read, and the pod is there meanwhile.
func TestTimeIsNotKeptOverAHoldThatHidesThePod(t *testing.T) {
	for name, hide := range map[string]func(a *reaper.Allocation){
		"unreadable": func(a *reaper.Allocation) { a.Unreadable = "it may be of two addresses" },
		"foreign":    func(a *reaper.Allocation) { a.Foreign = "?" },
		"no owner":   func(a *reaper.Allocation) { a.Owner = reaper.Owner{} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newSequence(namedStore{fixedStore{poolOf(webAllocation())}, "overlapping"})
			w.run(t) // ownerless
			w.now = w.now.Add(10 * time.Minute)
			hidden := webAllocation()
			hide(&hidden)
			w.stores[0].fixedStore = fixedStore{poolOf(hidden)}
			pod := showing(web, ip1)
			pod.Node, pod.TerminationGrace = "n1", time.Hour
			w.cluster([]reaper.Pod{pod}, ready("n1"))
			w.run(t)
			w.now = w.now.Add(10 * time.Minute)
			w.stores[0].fixedStore = fixedStore{poolOf(webAllocation())}
			w.cluster(nil, ready("n1")) // deleted by force just now
			kept(t, "first sight", w.entry(t, "overlapping"))
		})
	}
}

// 4. A TTL of a reserved IP ends half a minute before the grace period does. The jitter
// cuts the grace period short, and with it the TTL.
func TestJitterDoesNotCutATTLShort(t *testing.T) {
	ttl := 14*time.Minute + 40*time.Second
	w := newSequence(namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"})
	s := &fakeStore{}
	s.add(protecting("reserved", &ttl, ip1))
	run := func() reaper.Entry {
		h := newHarness(w.stores[0], s)
		h.policy, h.pods, h.ledgers, h.now = w.policy, w.pods, w.ledger, w.now
		return entryOf(t, h.run(t), "1")
	}
	run()
	w.now = noon.Add(14*time.Minute + 5*time.Second)
	kept(t, "before the TTL is over", run())
}

// 5. The age of an overlapping reservation is that of its object. A restore makes the
// object again, after n1 was cut off.
func TestRestoredObjectIsNotYoungerThanTheOutage(t *testing.T) {
	w := newSequence(namedStore{fixedStore{poolOf(func() reaper.Allocation {
		a := webAllocation()
		a.Created = noon.Add(time.Hour) // by the restore
		return a
	}())}, "overlapping"})
	away := reaper.Node{Name: "n1", Since: noon}
	w.cluster(nil, away)
	w.now = noon.Add(26 * time.Hour)
	w.run(t)
	w.now = w.now.Add(time.Hour)
	kept(t, "overlapping", w.entry(t, "overlapping"))
}

// 6. The clock of n1 is five minutes slow, and its kubelet itself says that it is not ready.
func TestKubeletWithASlowClock(t *testing.T) {
	a := webAllocation()
	a.Created = noon.Add(5 * time.Minute) // by the API server, on n1, before n1 became unready
	w := newSequence(namedStore{fixedStore{poolOf(a)}, "overlapping"})
	w.cluster(nil, reaper.Node{Name: "n1", Since: noon.Add(2 * time.Minute)}) // really at noon + 7m
	w.now = noon.Add(time.Hour)
	w.run(t)
	w.now = w.now.Add(time.Hour)
	kept(t, "overlapping", w.entry(t, "overlapping"))
}

// 7. An unnamed entry was seen; its node was away meanwhile, and a pod hid its address.
// The node is back by a clock that is ahead: there is no wait for its kubelet.
func TestUnnamedEntryWaitsForTheKubeletThatIsBack(t *testing.T) {
	a := reaper.Allocation{Key: "1", IP: ip1, Token: "t1", Owner: reaper.Owner{Sandbox: "s1"}}
	for name, ahead := range map[string]time.Duration{"true clock": 0, "a clock that is ahead": 5 * time.Minute, "a clock that is behind": -5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			w := newSequence(namedStore{fixedStore{poolOf(a)}, "whereabouts"})
			w.policy.Pods.Unnamed = policy.Release
			hidden := reaper.Pod{Ref: other, Node: "n2", AddressUnknown: true}
			w.cluster(nil, ready("n1"), ready("n2"))
			w.run(t)
			w.now = w.now.Add(30 * time.Minute)
			w.cluster([]reaper.Pod{hidden}, reaper.Node{Name: "n1", Since: noon.Add(time.Minute)}, ready("n2"))
			w.run(t)
			w.now = w.now.Add(30 * time.Minute)
			w.cluster(nil, reaper.Node{Name: "n1", Ready: true, Since: w.now.Add(-time.Second).Add(ahead)}, ready("n2"))
			kept(t, "one second after the node is back", w.entry(t, "whereabouts"))
		})
	}
}

// 7b. The same for a named one, at once ready, grace of one minute.
func TestNodeThatIsBackByASlowClock(t *testing.T) {
	w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1"))}, "calico"})
	w.policy.GracePeriod = &policy.Duration{}
	w.cluster(nil, reaper.Node{Name: "n1", Since: noon.Add(-time.Hour)})
	w.run(t)
	w.now = w.now.Add(15 * time.Minute)
	w.cluster(nil, reaper.Node{Name: "n1", Ready: true, Since: w.now.Add(-5 * time.Minute)})
	kept(t, "one second after the node is back", w.entry(t, "calico"))
}

// 9. A tenant names a termination grace period of 200 years.
func TestAnyTerminationGraceLeavesTheLedgerWhole(t *testing.T) {
	for name, grace := range map[string]time.Duration{
		"100 years": 100 * 365 * 24 * time.Hour, "292 years, the longest": 9223372036 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			w := newSequence(namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"})
			pod := showing(web, ip1)
			pod.Node, pod.TerminationGrace = "n1", grace
			w.cluster([]reaper.Pod{pod}, ready("n1"))
			w.run(t)
			if _, err := reaper.DecodeLedger(w.ledger.stored); err != nil {
				t.Errorf("the ledger of %s: %v", w.ledger.stored, err)
			}
			w.cluster(nil, ready("n1"))
			w.run(t)
			w.now = w.now.Add(time.Hour)
			kept(t, "pod ends slowly", w.entry(t, "whereabouts"))
		})
	}
}

// 10. A third member of a group is held. The first one that is kept speaks for all.
func TestEveryKeptMemberOfAGroupKeepsTheOthers(t *testing.T) {
	entry := webAllocation()
	entry.Group, entry.IP, entry.Key = "g", ip1, "1"
	newer := webAllocation()
	newer.IP, newer.Key, newer.Owner.Sandbox = ip2, "2", "s2"
	field := webAllocation()
	field.Group, field.Key, field.UnknownField, field.Owner.Sandbox = "g", "3", "spec.x", "s1"
	reservation := webAllocation()
	reservation.Group, reservation.Owner.Sandbox = "g", ""
	w := newSequence(
		namedStore{fixedStore{poolOf(reservation)}, "overlapping"},
		namedStore{fixedStore{poolOf(entry, newer, field)}, "whereabouts"})
	pod := showing(web, ip2)
	pod.Node = "n1"
	w.cluster([]reaper.Pod{pod}, ready("n1"))
	w.run(t)
	w.now = w.now.Add(30 * time.Minute)
	for _, e := range w.run(t).Entries {
		t.Logf("%s %s: %s %s %s", e.Backend, e.Key, e.Verdict, e.Reason, e.Note)
		if e.Key == "1" && e.Backend == "whereabouts" {
			kept(t, "entry", e)
		}
	}
}

// 11. With a grace period of zero, the second run in ten seconds believes a drop.
func TestDropIsNotBelievedTenSecondsLater(t *testing.T) {
	h, _ := afterDrop(t)
	h.policy.GracePeriod = &policy.Duration{}
	_, err := reaper.Run(t.Context(), h.options())
	equal(t, "refused at first", limitError(t, err) != nil, true)
	h.now = h.now.Add(10 * time.Second)
	r, err := reaper.Run(t.Context(), h.options())
	equal(t, "refused ten seconds later", limitError(t, err) != nil, true)
	equal(t, "released", r.Summary.Released, 0)
}

// 12. The pods drop further in each run, each time by less than half.
func TestDropInStepsStartsTheTimeAgain(t *testing.T) {
	h, _ := afterDrop(t) // 42 to 11
	h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	h.policy.Limits.MinEntries = new(2)
	for _, left := range []int{10, 6, 4, 2, 1} {
		for _, pod := range manyPods(40)[left:] {
			h.pods.Remove(pod.Ref)
		}
		_, err := reaper.Run(t.Context(), h.options())
		equal(t, "refused", limitError(t, err) != nil, true)
		h.now = h.now.Add(15 * time.Minute)
	}
}

// 13. A moved pod whose old sandbox still ends on a ready node, without a grace period.
func TestMovedPodIsGivenItsThirtySeconds(t *testing.T) {
	on2 := calicoOf("n2")
	on2.Key, on2.IP, on2.Group, on2.Owner = "8", ip1, "handle-s9", reaper.Owner{Pod: other, Sandbox: "s9", Node: "n2"}
	w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1"), on2)}, "calico"})
	w.policy.GracePeriod = &policy.Duration{}
	pod2 := showing(other, ip1)
	pod2.Node = "n2"
	w.cluster([]reaper.Pod{{Ref: web, Node: "n2", AddressUnknown: true, Starting: true}, pod2}, ready("n1"), ready("n2"))
	kept(t, "a second after the force deletion", w.entry(t, "calico"))
}

// 14. A pod came to another node and adopted its entry (the token changes). No run saw it.
func TestNodeOfAnEarlierSandboxIsNotThatOfALaterOne(t *testing.T) {
	w := newSequence(namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"})
	pod := showing(web, ip1)
	pod.Node = "n2"
	w.cluster([]reaper.Pod{pod}, ready("n1"), ready("n2"))
	w.run(t)
	adopted := webAllocation()
	adopted.Token, adopted.Owner.Sandbox = "t2", "s2"
	w.stores[0].fixedStore = fixedStore{poolOf(adopted)}
	w.cluster(nil, notReady("n1"), ready("n2")) // it is on n1 now
	w.now = w.now.Add(15 * time.Minute)
	w.run(t)
	w.now = w.now.Add(30 * time.Minute)
	kept(t, "whereabouts", w.entry(t, "whereabouts"))
}

// 15. Two siblings without a group: one of a store that is never adopted.
func TestNoGroupIsNoCommonGroup(t *testing.T) {
	a := webAllocation()
	a.Owner.Pod.Name = "db-0"
	old := a
	old.Key, old.IP, old.Token, old.Owner.Interface, old.NeverAdopted = "2", ip2, "t0", "", true
	s := situation{
		pools: []reaper.Pool{poolOf(a, old)},
		sets:  []reaper.StatefulSet{{Namespace: "default", Name: "db", Replicas: 1}},
	}
	equal(t, "decision", s.judge(t, noon)[0].Reason, reaper.Retained)
}

// A brokenStore cannot be listed.
type brokenStore struct{ name string }

func (s brokenStore) Name() string { return s.name }

func (brokenStore) List(context.Context) iter.Seq2[reaper.Pool, error] {
	return func(yield func(reaper.Pool, error) bool) { yield(reaper.Pool{}, errConnection) }
}

func (brokenStore) Release(_ context.Context, ws []reaper.Warrant) []error {
	return make([]error, len(ws))
}

// 16. A restarted pod still shows its old address, so the entry of its new sandbox looks
// replaced, and is too young. Its time must not count once the pod is gone.
func TestTimeOfAnADDThatLooksReplacedDoesNotCountForAPodThatIsGone(t *testing.T) {
	a := calicoOf("n1")
	a.Created = noon.Add(-time.Second)
	a.Owner.Sandbox, a.Group = "s2", "handle-s2"
	w := newSequence(namedStore{fixedStore{poolOf(a)}, "calico"})
	pod := showing(web, ip1)
	pod.Node, pod.Sandbox, pod.TerminationGrace = "n1", "s1", time.Hour
	w.cluster([]reaper.Pod{pod}, ready("n1"))
	w.run(t)
	// The pod shows ip2 until a second before the next run. It is deleted by force.
	w.now = noon.Add(15 * time.Minute)
	w.cluster(nil, ready("n1"))
	e := w.entry(t, "calico")
	kept(t, "first sight of a pod that is gone", e)
	w.now = noon.Add(62 * time.Minute) // 47 minutes after the deletion
	kept(t, "before its hour is over", w.entry(t, "calico"))
}
