package judge

import (
	"cmp"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// hangs reports whether the pod has been Terminating on a ready node for longer than its kubelet
// needs: the kubelet cannot stop its sandbox. It sets a terminal phase after the runtime has
// stopped the sandbox (SyncTerminatingPod and mergePodStatus of kubelet 1.36), and begins again
// when its node becomes ready.
func (f *Facts) hangs(pod census.Pod) bool {
	node := f.census.Node(pod.Node)
	if pod.Deadline.IsZero() || pod.Finished || !node.Ready {
		return false
	}
	return f.now.Sub(latest(pod.Deadline, node.Since.Add(pod.TerminationGrace))) > endMargin
}

// hung returns the place to remember for an allocation: the last one, or with the boot of
// its node if its pod hangs there, or is a mirror. Only a status counts for an allocation of another
// pod: anyone may write into annotations that a pod has the address.
//
// A pod hangs until its kubelet says that it has ended: on that node, and for a deleted pod, since
// a later one of that name may end too. The first boot counts, because the sandbox is from that one.
// The collector of pods also sets a phase, but only for nodes that are gone or have the taint
// out-of-service.
//
// A mirror is one until a mirror of its name has ended. A kubelet runs one static pod of a name at a
// time. The latest boot counts: a later sandbox may have adopted the allocation.
func (c *Case) hung(inUse bool) ledger.Place {
	pod, last := c.Pod, c.known.last
	if c.Presence != census.Present && inUse && c.HoldsAddress() {
		for claim := range c.keepingClaims {
			if claim.By.Kind == census.KindPod && claim.Proves {
				pod, _ = c.census.Pod(claim.By.Ref)
				break
			}
		}
	}
	ended := pod.Finished && pod.Node == last.Node && c.is(endedPod) &&
		!c.census.Off(pod.Node) && !c.census.Node(pod.Node).OutOfService // otherwise it was collected
	over := ended && !pod.Deadline.IsZero() || inUse && pod.Deadline.IsZero() && pod.Proves(c.IP)
	if last.Mirror {
		over = ended && pod.Mirror
	}
	if over {
		last = ledger.Place{Node: last.Node}
	}
	mirror := pod.Mirror && !pod.Finished && c.HoldsAddress() && !c.ByRuntime && (last.Boot == "" || last.Mirror)
	if inUse && (mirror || last.Boot == "" && c.hangs(pod)) {
		return ledger.Place{Node: pod.Node, Boot: cmp.Or(c.census.Node(pod.Node).Boot, ledger.UnknownBoot), Mirror: mirror}
	}
	return last
}

// mayRunOn reports whether the sandbox may still run at a place where it may outlive its pod: until
// the node is gone, fenced, or was rebooted.
func (f *Facts) mayRunOn(last ledger.Place) bool {
	boot := f.census.Node(last.Node).Boot
	rebooted := boot != "" && last.Boot != ledger.UnknownBoot && boot != last.Boot
	return f.policy.Pods.Stuck != policy.Release && last.Boot != "" && !rebooted && !f.census.Off(last.Node)
}

// terminationStuck holds what a hung pod had until its sandbox is surely dead.
func terminationStuck(c *Case) (Ruling, bool) {
	last := c.last()
	if last.Mirror || !c.mayRunOn(last) {
		return noMatch()
	}
	return match("its pod did not end in time on node "+last.Node,
		Evidence{fromLedger, "the pod was Terminating past its deadline on node " + last.Node})
}

// staticPod holds what a static pod had until its sandbox is surely dead. Its kubelet runs it without
// a mirror, too, such as if someone deletes that, and a webhook denies the next one.
//
// A mirror that is back shows its address. If the store proves that this is of a later sandbox, the
// kubelet has ended this one. Only a kubelet writes a status, and only that of a static pod that it
// runs.
func staticPod(c *Case) (Ruling, bool) {
	last := c.last()
	if !last.Mirror || !c.mayRunOn(last) {
		return noMatch()
	}
	if state, _ := c.state(); c.Pod.Mirror && c.Pod.InStatus > 0 && state == otherSandboxed {
		return noMatch()
	}
	return match("its pod was the mirror of a static pod on node "+last.Node,
		Evidence{fromLedger, "the pod was the mirror of a static pod on node " + last.Node})
}
