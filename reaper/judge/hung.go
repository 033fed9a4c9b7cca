package judge

import (
	"cmp"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
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

// hung returns the place to remember for an allocation whose last place is given: with the boot of
// its node if its pod hangs there. The first boot counts, because the sandbox is from that one.
// Only a status counts: anyone may write into annotations that a pod has the address.
//
// A pod hangs until its kubelet says that it has ended: on that node, and for a deleted pod, since
// a later one of that name may end too. The collector of pods also sets a phase, but only for
// nodes that are gone or have the taint out-of-service.
func (f *Facts) hung(a *ipam.Allocation, inUse bool, last ledger.Place) ledger.Place {
	pod, presence := f.census.Pod(a.Owner.Pod)
	if presence != census.Present && inUse {
		if witness, _ := f.otherWitness(a); witness.Proves(a.IP) {
			pod = witness
		}
	}
	collected := f.census.Off(pod.Node) || f.census.Node(pod.Node).OutOfService
	ended := pod.Node == last.Node && !collected && !pod.Deadline.IsZero() && f.is(a, endedPod)
	switch {
	case last.Boot == "" && inUse && f.hangs(pod):
		return ledger.Place{Node: pod.Node, Boot: cmp.Or(f.census.Node(pod.Node).Boot, ledger.UnknownBoot)}
	case last.Boot != "" && (ended || inUse && pod.Deadline.IsZero() && pod.Proves(a.IP)):
		last.Boot = ""
	}
	return last
}

// terminationStuck holds what a hung pod had until its sandbox is surely dead: the node is
// gone, fenced, or was rebooted.
func terminationStuck(f *Facts, a *ipam.Allocation) (Ruling, bool) {
	last := f.ledger.Last(a)
	boot := f.census.Node(last.Node).Boot
	rebooted := boot != "" && last.Boot != ledger.UnknownBoot && boot != last.Boot
	if f.policy.Pods.Stuck == policy.Release || last.Boot == "" || rebooted || f.census.Off(last.Node) {
		return noMatch()
	}
	return match("its pod did not end in time on node "+last.Node,
		Evidence{fromLedger, "the pod was Terminating past its deadline on node " + last.Node})
}
