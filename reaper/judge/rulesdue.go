package judge

import (
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
		return c.ripen(0, "", lostBy(c.Pod))
	}
}

func podMoved(c *Case) (Ruling, bool) {
	if !c.is(movedPod) {
		return noMatch()
	}
	says := "the pod is on node " + c.Pod.Node
	least := c.addInFlight()
	if !c.census.Fenced(c.Owner.Node) { // the kubelet may still end the earlier pod
		least = max(least, defaultTermination+endMargin)
	}
	return c.ripen(least, says, Evidence{fromPods, says}, Evidence{fromStore, "the allocation is on node " + c.Owner.Node})
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
	return c.ripen(c.addInFlight(), note, evidence)
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
	return c.ripen(c.whileStarting(), "", Evidence{fromPods, "no pod shows the sandbox or the address"})
}

// whileStarting returns the shortest wait of an allocation that names no pod while pods
// are starting. It may be of one of their ADDs. An allocation that stays as it is for
// longer than an ADD can take is not.
func (c *Case) whileStarting() time.Duration {
	if !c.census.Starting() {
		return 0
	}
	return max(c.terms().MinAge, addWindow)
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
	var least time.Duration
	for node := range c.nodesOf() {
		if c.census.Node(node).Ready && strings.HasSuffix(c.Owner.Pod.Name, "-"+node) { // as a mirror is named
			least = max(least, mirrorGap)
		}
	}
	return c.ripen(least, "", Evidence{fromPods, "the pod does not exist"})
}
