package judge

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
)

// when returns the rule for allocations whose named pod is in a state in which it no
// longer has them.
func when(state podState) func(*Case) (Ruling, bool) {
	return func(c *Case) (Ruling, bool) {
		if !c.is(state) {
			return noMatch()
		}
		var least time.Duration
		if state == endedPod && c.Pod.HostNetwork { // it had no address: the allocation is of an earlier pod
			least = c.whileEarlierEnds()
		}
		evidence := []Evidence{lostBy(c.Pod)}
		if state == endedPod {
			evidence = append(evidence, Evidence{fromPolicy, "pods.finished is release"})
		}
		return c.ripen(least, "", evidence...)
	}
}

func podMoved(c *Case) (Ruling, bool) {
	if !c.is(movedPod) {
		return noMatch()
	}
	says := "the pod is on node " + c.Pod.Node
	return c.ripen(c.whileEarlierEnds(), says, Evidence{fromPods, says}, Evidence{fromStore, "the allocation is on node " + c.Owner.Node})
}

// podOnHost waits as podMoved does.
func podOnHost(c *Case) (Ruling, bool) {
	if !c.is(hostPod) {
		return noMatch()
	}
	const says = "the pod is on the network of its node"
	return c.ripen(c.whileEarlierEnds(), says, Evidence{fromPods, says})
}

// whileEarlierEnds returns the shortest wait of an allocation of an earlier pod, whose kubelet may still
// end it, or may not have ended its ADD.
func (c *Case) whileEarlierEnds() time.Duration {
	if c.census.Fenced(c.Owner.Node) && !c.misleads() {
		return c.addInFlight()
	}
	return max(c.addInFlight(), defaultTermination+endMargin)
}

// podAgain waits for the earlier pod to end, and for as long as an ADD can take: if the clock of a
// node is slow, the allocation may be that of an ADD for the pod itself.
func podAgain(c *Case) (Ruling, bool) {
	if !c.is(youngerPod) {
		return noMatch()
	}
	says := "the pod was created at " + Stamp(c.Pod.Created)
	return c.ripen(max(c.minAge(), addWindow), says, Evidence{fromPods, says}, Evidence{fromStore, "it was allocated at " + Stamp(c.Created)})
}

func sandboxReplaced(c *Case) (Ruling, bool) {
	state, other := c.state()
	if state != otherSandboxed {
		return noMatch()
	}
	note, evidence := otherAddress(other)
	return c.ripen(max(c.terms().MinAge, addWindow), note, evidence, Evidence{fromPolicy, "pods.superseded is release"}) // whatever the clock of a node says
}

// addInFlight returns the shortest wait of an allocation that may be of an unfinished ADD:
// until it is older than an ADD can take. Where sandboxes adopt allocations, one can be
// older than the ADD that has it now.
func (c *Case) addInFlight() time.Duration {
	if c.SandboxOwned() && !c.Created.IsZero() && !c.Created.After(c.now) {
		return c.Created.Add(addWindow).Sub(c.since())
	}
	return max(c.terms().MinAge, addWindow)
}

// otherAddress names the address that the pod has instead of this allocation's.
func otherAddress(other netip.Addr) (note string, evidence Evidence) {
	return "the pod has " + other.String(), Evidence{fromStore, "a later sandbox of the pod has " + other.String()}
}

// emptyHandle waits at least as long as sandboxReplaced does: Calico writes the handle
// of an ADD before the block.
func emptyHandle(c *Case) (Ruling, bool) {
	if !c.EmptyHandle {
		return noMatch()
	}
	return c.ripen(max(c.terms().MinAge, addWindow), "", Evidence{fromStore, "the handle holds no address"})
}

func sandboxAbsent(c *Case) (Ruling, bool) {
	if c.NamesPod() || !c.HoldsAddress() {
		return noMatch()
	}
	var least time.Duration
	if c.census.Starting() { // it may be of one of their ADDs, unless it stays for longer than these take
		least = max(c.terms().MinAge, addWindow)
	}
	return c.ripen(least, "", Evidence{fromPods, "no pod shows the sandbox or the address"}, Evidence{fromPolicy, "pods.unnamed is release"})
}

// mirrorGap is how long a static pod may be without its mirror after the mirror was deleted: its
// sandbox keeps running, and the kubelet makes the mirror again when it next looks at the pod.
// That is up to 90 s later (workerResyncIntervalJitterFactor). It is for mirrors that no run saw:
// see staticPod.
const mirrorGap = 3 * time.Minute

func podAbsent(c *Case) (Ruling, bool) {
	if c.Presence != census.Absent {
		return noMatch()
	}
	evidence := []Evidence{{fromPods, "the pod does not exist"}}
	if set, wanted := c.census.Wants(c.Owner.Pod); wanted && c.neverAdopted() {
		evidence = append(evidence, Evidence{fromStatefulSet + set.Namespace + "/" + set.Name, "it wants the pod back, which cannot adopt the allocation"})
	}
	var least time.Duration
	for node := range c.nodesOf() {
		if c.census.Node(node).Ready && strings.HasSuffix(c.Owner.Pod.Name, "-"+node) { // as a mirror is named
			least = mirrorGap
		}
	}
	return c.ripen(least, "", evidence...)
}

func beingDeleted(c *Case) (Ruling, bool) { return storeSays(c.Deleting) }

func protectedByStore(c *Case) (Ruling, bool) {
	if c.Interrupted || c.UntilBoot && c.rebooted() {
		return noMatch()
	}
	return storeSays(c.Protected)
}

func outOfScope(c *Case) (Ruling, bool) {
	if c.terms().InScope {
		return noMatch()
	}
	why := c.policy.Outside(c.Owner.Pod.Namespace)
	return match(why, Evidence{fromPolicy, why})
}

// heldBy begins the notes of heldByRule.
const heldBy = "held by "

func heldByRule(c *Case) (Ruling, bool) {
	terms := c.terms()
	if !terms.Hold {
		return noMatch()
	}
	note := fmt.Sprintf("%srules[%d]: %s", heldBy, terms.Rule, c.policy.Rules[terms.Rule].Match)
	return match(note, Evidence{fromPolicy, note})
}

func restoredLately(c *Case) (Ruling, bool) {
	at := c.restoredAt()
	until := at.Add(c.policy.Journal.RestoreHold.Duration)
	if at.IsZero() || !c.now.Before(until) || c.terms().ReleaseRestored {
		return noMatch()
	}
	return match("a restore put it back; held until "+Stamp(until), Evidence{fromLedger, "a restore put it back at " + Stamp(at) + ", so its grace period ends no earlier than " + Stamp(at.Add(c.terms().Grace))})
}

func unknownField(c *Case) (Ruling, bool) {
	if c.UnknownField == "" {
		return noMatch()
	}
	return storeSays("it has an unknown field: " + c.UnknownField)
}

func noToken(c *Case) (Ruling, bool) {
	if c.Token != "" {
		return noMatch()
	}
	return match("", Evidence{fromStore, "the allocation has no token that would reveal a change"})
}

// tooYoung begins the grace period, which counts from now on. An allocation from the future
// has a wrong clock, and ripen waits for it. For a blank one, sandboxGone waits.
func tooYoung(c *Case) (Ruling, bool) {
	minAge, age := c.minAge(), c.now.Sub(c.Created)
	if c.Interrupted || c.Blank || c.Created.IsZero() || age < 0 || age >= minAge {
		return noMatch()
	}
	why := Evidence{fromPolicy, c.termOf("minAge", c.terms().MinAge)}
	if minAge > c.terms().MinAge {
		why = Evidence{fromRuntime, fmt.Sprintf("it may still make a sandbox that is younger than %v", minAge)}
	}
	gone := !c.present() // otherwise a live pod may have it, and it only looks replaced
	return Ruling{
		FirstSeen: c.since(), remembered: gone, Note: "too young to tell until " + Stamp(c.Created.Add(minAge)),
		Evidence: []Evidence{{fromStore, "it was allocated at " + Stamp(c.Created)}, why},
	}, true
}

// termOf says how long a term of the allocation is, and which rule of the policy may have
// set it.
func (c *Case) termOf(field string, d time.Duration) string {
	says := fmt.Sprintf("%s is %v", field, d)
	if rule := c.terms().Rule; rule >= 0 {
		says += fmt.Sprintf(", by rules[%d]: %s", rule, c.policy.Rules[rule].Match)
	}
	return says
}

// ripen decides on an ownerless allocation by time. It is suspected until its grace
// period is over, for at least the given time and as long as its store lets addresses rest, and until
// the kubelet has ended its sandbox. Then it is an orphan. An interrupted release does not wait.
func (c *Case) ripen(atLeast time.Duration, note string, evidence ...Evidence) (Ruling, bool) {
	terms := c.terms()
	if c.Created.After(c.now) { // by the clock of its node: it counts as made now
		atLeast = max(atLeast, c.minAge())
	}
	r := Ruling{Verdict: Suspected, Note: note, FirstSeen: c.since()}
	evidence = append(evidence, c.freedNodes()...)
	grace := r.FirstSeen.Add(terms.Grace)
	pool := c.PoolOf(c.Allocation)
	atLeast = max(atLeast, pool.Rest)
	if pool.Rest > terms.Grace {
		evidence = append(evidence, Evidence{fromStore, pool.RestBy})
	}
	other := r.FirstSeen.Add(atLeast)
	if until, why := c.ended(r.FirstSeen); until.After(other) {
		other = until
		if until.After(grace) && c.now.Before(until) {
			r.Note, evidence = cmp.Or(note, why.Says), append(evidence, why)
		}
	}
	if c.Interrupted {
		grace, other = r.FirstSeen, r.FirstSeen
	}
	r.Evidence, r.Due = evidence, latest(grace, other)
	r.remembered = r.Due.After(r.FirstSeen)
	if !c.now.Before(other) && !c.now.Add(jitter(terms.Grace)).Before(grace) {
		r.Verdict = Orphaned
		return r, true
	}
	r.Evidence = append(r.Evidence, Evidence{fromPolicy, c.termOf("gracePeriod", terms.Grace)})
	return r, true
}

// since returns when the allocation was first seen ownerless, which may be now. While the
// named pod exists, a different time counts than after it is gone: an allocation that only
// looked replaced was still the pod's.
//
// A restore is an operator's word that the pod may be alive. So what a run saw during the hold counts
// only for runs that end the hold. For the others, the time begins after it.
func (c *Case) since() time.Time {
	since := c.ledger.Since(c.Allocation, c.present(), c.now)
	if at := c.restoredAt(); !at.IsZero() && !c.terms().ReleaseRestored {
		since = latest(since, at.Add(c.policy.Journal.RestoreHold.Duration))
	}
	if since.After(c.now) {
		return c.now
	}
	return since
}

// present reports whether the pod that the allocation names exists, if that matters.
func (c *Case) present() bool {
	return c.Presence == census.Present && !c.ByRuntime
}

// jitter returns how much a grace period may be cut short. A CronJob starts a few seconds
// late, and not equally late each time. So with a run every 15 minutes, a grace period of
// 15 minutes would otherwise end one run later. Short grace periods are exact.
func jitter(grace time.Duration) time.Duration {
	if grace < 5*time.Minute {
		return 0
	}
	return min(grace/60, 15*time.Second)
}

// nodeMinAge is the age below which no allocation on a node is suspected. A runtime calls
// the network's ADD before it stores the sandbox, and the kubelet gives it twice two
// minutes for that.
const nodeMinAge = 10 * time.Minute

// minAge returns the age below which the allocation is not suspected.
func (c *Case) minAge() time.Duration {
	minAge := c.terms().MinAge
	if c.ByRuntime {
		return max(minAge, nodeMinAge)
	}
	return minAge
}
