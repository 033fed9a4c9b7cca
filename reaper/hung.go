package reaper

import (
	"cmp"

	"github.com/ip-reaper/ip-reaper/policy"
)

// unknownBoot stands for the boot of a node that does not tell it.
const unknownBoot = "?"

// hangs reports whether the pod is Terminating on a ready node for longer than its kubelet
// needs: the kubelet cannot stop its sandbox. It sets a terminal phase after the runtime has
// stopped the sandbox (SyncTerminatingPod and mergePodStatus of kubelet 1.36), and begins anew
// when its node becomes ready.
func (f *Facts) hangs(pod Pod) bool {
	node := f.census.nodes[pod.Node]
	if pod.Deadline.IsZero() || pod.Finished || !node.Ready {
		return false
	}
	return f.now.Sub(latest(pod.Deadline, node.Since.Add(pod.TerminationGrace))) > endMargin
}

// hung returns the place to remember of an allocation that had the given one: with the boot
// of its node if its pod hangs there. A pod that hung does so until its kubelet says that it
// has ended. It is not the kubelet that says so of a node which is gone: the collector of
// orphaned pods sets a phase, too.
func (f *Facts) hung(a *Allocation, inUse bool, last place) place {
	pod, presence := f.census.pod(a.Owner.Pod)
	if presence != Present && inUse {
		pod, _ = f.otherWitness(a)
	}
	switch {
	case inUse && f.hangs(pod):
		return place{pod.Node, cmp.Or(f.census.nodes[pod.Node].Boot, unknownBoot)}
	case last.boot != "" && (f.finished(a) && !f.census.off(pod.Node) || inUse && pod.Deadline.IsZero() && pod.shows(a.IP)):
		last.boot = ""
	}
	return last
}

// terminationStuck holds what a pod had that hung, until the sandbox is surely dead: the node
// is gone, fenced, or was started anew.
func terminationStuck(f *Facts, a *Allocation) (Ruling, bool) {
	last := f.ledger.last(a)
	boot := f.census.nodes[last.node].Boot
	rebooted := boot != "" && last.boot != unknownBoot && boot != last.boot
	if f.policy.Pods.Stuck == policy.Release || last.boot == "" || rebooted || f.census.off(last.node) || f.finished(a) {
		return noMatch()
	}
	return match("its pod could not be ended on node "+last.node+", and was deleted by force",
		Evidence{fromLedger, "the pod was Terminating past its deadline on node " + last.node})
}
