package judge

import (
	"net/netip"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// when returns the rule for allocations whose named pod is in a state in which it no
// longer has them.
func when(state podState) func(*Facts, *ipam.Allocation) (Ruling, bool) {
	return func(f *Facts, a *ipam.Allocation) (Ruling, bool) {
		pod, is, _ := f.state(a)
		if is != state {
			return noMatch()
		}
		return f.ripen(a, 0, "", lostBy(pod))
	}
}

func podMoved(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	pod, state, _ := f.state(a)
	if state != movedPod {
		return noMatch()
	}
	says := "the pod is on node " + pod.Node
	least := f.addInFlight(a)
	if !f.census.Fenced(a.Owner.Node) { // the kubelet may still end the earlier pod
		least = max(least, defaultTermination+endMargin)
	}
	return f.ripen(a, least, says, Evidence{fromPods, says}, Evidence{fromStore, "the allocation is on node " + a.Owner.Node})
}

// podAgain waits for the earlier pod to end, and for as long as an ADD can take: if the clock of a
// node is slow, the allocation may be that of an ADD for the pod itself.
func podAgain(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	pod, state, _ := f.state(a)
	if state != youngerPod {
		return noMatch()
	}
	says := "the pod was created at " + Stamp(pod.Created)
	return f.ripen(a, max(f.minAge(a), addWindow), says, Evidence{fromPods, says}, Evidence{fromStore, "it was allocated at " + Stamp(a.Created)})
}

func sandboxReplaced(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	_, state, other := f.state(a)
	if state != otherSandboxed {
		return noMatch()
	}
	note, evidence := otherAddress(other)
	return f.ripen(a, f.addInFlight(a), note, evidence)
}

// addInFlight returns the shortest wait of an allocation that may be of an unfinished ADD:
// until it is older than an ADD can take. Where sandboxes adopt allocations, one can be
// older than the ADD that has it now.
func (f *Facts) addInFlight(a *ipam.Allocation) time.Duration {
	if a.SandboxOwned && !a.Created.IsZero() && !a.Created.After(f.now) {
		return a.Created.Add(addWindow).Sub(f.since(a))
	}
	return max(f.terms(a).MinAge, addWindow)
}

// otherAddress names the address that the pod has instead of this allocation's.
func otherAddress(other netip.Addr) (note string, evidence Evidence) {
	return "the pod has " + other.String(), Evidence{fromStore, "a later sandbox of the pod has " + other.String()}
}

// emptyHandle waits at least as long as sandboxReplaced does: Calico writes the handle
// of an ADD before the block.
func emptyHandle(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	if !a.EmptyHandle {
		return noMatch()
	}
	return f.ripen(a, max(f.terms(a).MinAge, addWindow), "", Evidence{fromStore, "the handle holds no address"})
}

func sandboxAbsent(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	if a.NamesPod() || !a.HoldsAddress() {
		return noMatch()
	}
	return f.ripen(a, f.whileStarting(a), "", Evidence{fromPods, "no pod shows the sandbox or the address"})
}

// whileStarting returns the shortest wait of an allocation that names no pod while pods
// are starting. It may be of one of their ADDs. An allocation that stays as it is for
// longer than an ADD can take is not.
func (f *Facts) whileStarting(a *ipam.Allocation) time.Duration {
	if !f.census.Starting() {
		return 0
	}
	return max(f.terms(a).MinAge, addWindow)
}

// mirrorGap is how long a static pod may be without its mirror after the mirror was deleted: its
// sandbox keeps running, and the kubelet makes the mirror again when it next looks at the pod.
// That is up to 90 s later (workerResyncIntervalJitterFactor). It is for mirrors that no run saw:
// see staticPod.
const mirrorGap = 3 * time.Minute

func podAbsent(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	if _, presence := f.census.Pod(a.Owner.Pod); presence != census.Absent {
		return noMatch()
	}
	var least time.Duration
	for node := range f.nodesOf(a) {
		if f.census.Node(node).Ready && strings.HasSuffix(a.Owner.Pod.Name, "-"+node) { // as a mirror is named
			least = max(least, mirrorGap)
		}
	}
	return f.ripen(a, least, "", Evidence{fromPods, "the pod does not exist"})
}
