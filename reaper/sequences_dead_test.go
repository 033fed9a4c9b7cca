package reaper_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper"
)

func goes(t *testing.T, what string, e reaper.Entry) {
	t.Helper()
	if e.Verdict != reaper.Orphaned {
		t.Errorf("%s: %s %s (%s), first seen %v, due %v", what, e.Verdict, e.Reason, e.Note, e.FirstSeen, e.Due)
	}
}

// S1. The node of a pod that would take a day to end is fenced. Or its object is deleted: then
// the machine may still run, and its kubelet gets an hour.
func TestNodeThatIsOffNeedsLittleTimeToEndItsPods(t *testing.T) {
	for name, tt := range map[string]struct {
		nodes []reaper.Node
		after time.Duration
	}{
		"fenced": {[]reaper.Node{{Name: "n1", OutOfService: true}, ready("n2")}, 15 * time.Minute},
		"gone":   {[]reaper.Node{ready("n2")}, 61 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1"))}, "calico"})
			pod := showing(web, ip2)
			pod.Node, pod.Sandbox, pod.TerminationGrace = "n1", "s1", 24*time.Hour
			w.cluster([]reaper.Pod{pod}, ready("n1"), ready("n2"))
			w.run(t)
			w.cluster(nil, tt.nodes...)
			w.run(t)
			w.now = w.now.Add(tt.after - time.Minute)
			kept(t, "a minute before", w.entry(t, "calico"))
			w.now = w.now.Add(time.Minute)
			goes(t, "in time", w.entry(t, "calico"))
		})
	}
}

// S2. The store has no UIDs, so a replaced sandbox may be of an earlier pod of that name on
// the same node, which was deleted by force and still ends.
func TestReplacedSandboxOfAnEarlierPodGetsItsTimeToEnd(t *testing.T) {
	later := calicoOf("n1")
	later.Key, later.IP, later.Token, later.Group = "8", ip1, "c2", "handle-s2"
	later.Owner.Sandbox, later.Created = "s2", noon.Add(-time.Minute)
	w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1"), later)}, "calico"})
	first := showing(web, ip2)
	first.Node, first.Sandbox, first.TerminationGrace = "n1", "s1", time.Hour
	w.cluster([]reaper.Pod{first}, ready("n1"))
	w.run(t)
	second := showing(web, ip1)
	second.Node, second.Sandbox, second.TerminationGrace = "n1", "s2", 30*time.Second
	w.cluster([]reaper.Pod{second}, ready("n1"))
	w.run(t)
	w.now = w.now.Add(30 * time.Minute)
	kept(t, "half an hour after the deletion", w.entry(t, "calico"))
	w.now = w.now.Add(32 * time.Minute)
	goes(t, "after its hour", w.entry(t, "calico"))
}

// S3. The autoscaler adds a node now and then. Each is not ready for its first minute. The
// allocation is older than all of them.
func TestNodesThatJoinDoNotHoldOlderAllocations(t *testing.T) {
	w := newSequence(namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"})
	w.cluster(nil, ready("n1"))
	w.run(t)
	for n := range 96 {
		w.now = w.now.Add(15 * time.Minute)
		joins := reaper.Node{Name: fmt.Sprint("new-", n), Created: w.now.Add(-20 * time.Second), Since: w.now.Add(-20 * time.Second)}
		w.cluster(nil, ready("n1"), joins)
		e := w.entry(t, "whereabouts")
		if e.Verdict == reaper.Orphaned {
			return
		}
		if n == 95 {
			goes(t, "after a day", e)
		}
	}
}

// S3b. Nodes join only in every second run, which resets the time of the others.
func TestNodesThatJoinNowAndThenDoNotResetTheTime(t *testing.T) {
	w := newSequence(namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"})
	w.policy.GracePeriod = &policy.Duration{Duration: 30 * time.Minute}
	for n := range 96 {
		w.now = w.now.Add(15 * time.Minute)
		w.cluster(nil, ready("n1"))
		if n%2 == 0 {
			w.cluster(nil, ready("n1"), reaper.Node{Name: "n9", Created: w.now.Add(-20 * time.Second), Since: w.now.Add(-20 * time.Second)})
		}
		e := w.entry(t, "whereabouts")
		if e.Verdict == reaper.Orphaned {
			return
		}
		if n == 95 {
			goes(t, "after a day", e)
		}
	}
}

// S9. One node is ready again all the time. The allocation's node is not known.
func TestNodeThatIsReadyAgainAllTheTime(t *testing.T) {
	w := newSequence(namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"})
	pod := showing(web, ip1)
	pod.TerminationGrace = time.Hour
	w.cluster([]reaper.Pod{pod}, ready("n1"))
	w.run(t)
	for n := range 96 {
		w.now = w.now.Add(15 * time.Minute)
		w.cluster(nil, ready("n1"), reaper.Node{Name: "n9", Ready: true, Since: w.now.Add(-2 * time.Minute)})
		e := w.entry(t, "whereabouts")
		if e.Verdict == reaper.Orphaned {
			return
		}
		if n == 95 {
			goes(t, "after a day", e)
		}
	}
}

// S4. The graces of living pods fill the ledger.
func TestGracesOfLivingPodsLeaveRoomForTimes(t *testing.T) {
	as := []reaper.Allocation{webAllocation()}
	pods := []reaper.Pod{}
	for n := range 10 {
		a := webAllocation()
		a.Key, a.IP, a.Token = fmt.Sprint(n+2), ip1.Next().Next(), fmt.Sprint("x", n)
		for range n {
			a.IP = a.IP.Next()
		}
		a.Owner = app(fmt.Sprint("p", n))
		pod := showing(a.Owner.Pod, a.IP)
		pod.Node, pod.UID, pod.TerminationGrace = "n1", a.Owner.UID, time.Minute
		as, pods = append(as, a), append(pods, pod)
	}
	w := newSequence(namedStore{fixedStore{poolOf(as...)}, "whereabouts"})
	w.ledger.capacity = 150 // bytes
	w.cluster(pods, ready("n1"))
	for range 3 {
		w.run(t)
		w.now = w.now.Add(time.Hour)
	}
	goes(t, "after hours", w.entry(t, "whereabouts"))
}

// S6. Another policy has no grace period, and only plans.
func TestPolicyWithoutGraceKeepsTheTimesOfAnother(t *testing.T) {
	w := newSequence(namedStore{fixedStore{poolOf(webAllocation())}, "whereabouts"})
	for n := range 6 {
		w.policy.GracePeriod = &policy.Duration{Duration: 15 * time.Minute}
		w.policy.DryRun = new(bool)
		e := w.entry(t, "whereabouts")
		if e.Verdict == reaper.Orphaned {
			return
		}
		if n == 5 {
			goes(t, "after hours", e)
		}
		h := newHarness(w.stores[0])
		h.policy, h.pods, h.ledgers, h.now = w.policy, w.pods, w.ledger, w.now.Add(7*time.Minute)
		dry := true
		h.policy.DryRun, h.policy.GracePeriod = &dry, &policy.Duration{}
		h.change = func(o *reaper.Options) { o.Remember = true }
		h.run(t)
		w.now = w.now.Add(15 * time.Minute)
	}
}

// S7. nodes.unreachable: release reads no nodes, so nothing is known to be ready.
func TestPolicyThatDoesNotHoldUnreachableNodesSeesPodsThatMoved(t *testing.T) {
	on2 := calicoOf("n2")
	on2.Key, on2.IP, on2.Group, on2.Owner = "8", ip1, "handle-s9", reaper.Owner{Pod: other, Sandbox: "s9", Node: "n2"}
	w := newSequence(namedStore{fixedStore{poolOf(calicoOf("n1"), on2)}, "calico"})
	w.policy.Nodes.Unreachable = policy.Release
	pod2 := showing(other, ip1)
	pod2.Node = "n2"
	w.cluster([]reaper.Pod{{Ref: web, Node: "n2", AddressUnknown: true, Starting: true}, pod2}, notReady("n1"), ready("n2"))
	w.run(t)
	w.now = w.now.Add(time.Hour)
	goes(t, "a moved pod", w.entry(t, "calico"))
}

func TestPolicyThatDoesNotHoldUnreachableNodesReleasesUnnamedInADryPool(t *testing.T) {
	a := reaper.Allocation{Key: "1", IP: ip1, Token: "t1", Owner: reaper.Owner{Sandbox: "s1"}}
	w := newSequence(namedStore{fixedStore{poolOf(a)}, "whereabouts"})
	w.policy.Nodes.Unreachable, w.policy.Pods.Unnamed = policy.Release, policy.Release
	w.cluster([]reaper.Pod{{Ref: other, Node: "n2", AddressUnknown: true, Starting: true}}, ready("n2"))
	w.run(t)
	w.now = w.now.Add(time.Hour)
	goes(t, "an unnamed entry", w.entry(t, "whereabouts"))
}

// 17. A run whose plan is over a limit believed its list of pods. A doubt ends with that.
func TestDoubtEndsWithAListThatIsBelieved(t *testing.T) {
	h, _ := afterDrop(t)
	h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	_, err := reaper.Run(t.Context(), h.options())
	equal(t, "refused at first", limitError(t, err) != nil, true)
	// The pods are back, and the plan is over a limit.
	h.pods.Add(manyPods(40)...)
	h.now = h.now.Add(15 * time.Minute)
	h.policy.GracePeriod = &policy.Duration{}
	zero, two := 0.1, 2
	h.policy.Limits.MaxFraction, h.policy.Limits.MinEntries = &zero, &two
	_, err = reaper.Run(t.Context(), h.options())
	t.Logf("over a limit: %v", err)
	for _, pod := range manyPods(40)[10:] {
		h.pods.Remove(pod.Ref)
	}
	h.policy.GracePeriod = &policy.Duration{Duration: time.Hour}
	h.now = h.now.Add(72 * time.Hour)
	_, err = reaper.Run(t.Context(), h.options())
	equal(t, "refused at the second drop", limitError(t, err) != nil, true)
}

// 18. What was restored is held, also if its pod is known only by a sibling of its sandbox.
func TestRestoredEntryIsHeldAlsoIfASiblingNamedItsPod(t *testing.T) {
	a := reaper.Allocation{Key: "1", IP: ip1, Token: "t1", Owner: reaper.Owner{Sandbox: "s1"}}
	w := newSequence(namedStore{fixedStore{poolOf(a)}, "whereabouts"}, namedStore{fixedStore{poolOf(calicoOf("n1"))}, "calico"})
	w.policy.Pods.Unnamed = policy.Release
	w.run(t)
	w.now = w.now.Add(30 * time.Minute)
	e := w.entry(t, "whereabouts")
	t.Logf("%s %s owner %+v", e.Verdict, e.Reason, e.Owner)
	h := newHarness(namedStore{fixedStore{}, "whereabouts"})
	_, err := reaper.Restore(t.Context(), reaper.RestoreOptions{
		ID: "r", Journal: reaper.Journal{Records: []reaper.Record{{
			Backend: "whereabouts", Pool: "pool", Key: "1", IP: ip1.String(), Owner: e.Owner,
		}}},
		Backends: h.options().Backends, Cluster: w.pods, Ledgers: w.ledger,
		Now: func() time.Time { return w.now }, Logger: h.options().Logger,
	})
	t.Logf("restore: %v", err)
	w.stores[1].fixedStore = fixedStore{poolOf()} // Calico's allocation stays released
	for range 3 {
		w.now = w.now.Add(30 * time.Minute)
		kept(t, "restored", w.entry(t, "whereabouts"))
	}
}
