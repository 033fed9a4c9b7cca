package judge

import (
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A podState says how the pod that an allocation names relates to it.
type podState int

const (
	noPod          podState = iota // there is none, or it is not known
	itsPod                         // it has the allocation
	endedPod                       // it has succeeded or failed
	replacedPod                    // it has another UID
	movedPod                       // it is on another node
	youngerPod                     // it is younger than the allocation
	otherSandboxed                 // it has a later sandbox with another address
)

// state returns the pod that the allocation names, how it relates to the allocation, and the
// address of a later sandbox. Only a pod that exists may be evidence against an allocation.
//
// The stronger reason is asked first, except for a finished pod that shows the address: the
// allocation is surely its own.
func (f *Facts) state(a *ipam.Allocation) (pod census.Pod, state podState, other netip.Addr) {
	pod, presence := f.census.Pod(a.Owner.Pod)
	switch {
	case presence != census.Present:
		return pod, noPod, other
	case !a.HoldsAddress():
		return pod, itsPod, other
	case pod.Finished && pod.Shows(a.IP):
		return pod, endedPod, other
	case a.Owner.UID != "" && pod.UID != "" && a.Owner.UID != pod.UID:
		return pod, replacedPod, other
	case f.moved(a, pod):
		return pod, movedPod, other
	case f.ofEarlierPod(a, pod):
		return pod, youngerPod, other
	}
	if other, replaced := f.replacement(a, pod); replaced {
		return pod, otherSandboxed, other
	}
	if pod.Finished {
		return pod, endedPod, other
	}
	return pod, itsPod, other
}

// is reports whether the state of the allocation's pod is the given one.
func (f *Facts) is(a *ipam.Allocation, want podState) bool {
	_, state, _ := f.state(a)
	return state == want
}

// moved reports whether the pod is on a different node than the allocation: a pod never changes
// its node, so the allocation is of an earlier pod of that name.
//
// The store itself must name the node, and name nodes as the API server does: the
// allocation's node must exist, or the store must have an allocation on the pod's node.
// The pod must be on a ready node, and must not hide an address: otherwise it may have
// the address and be unable to show it. If the store has an address of the pod's status on
// a different node than the pod, its names of nodes prove nothing. Nor does a name that may be
// another one of the pod's node.
func (f *Facts) moved(a *ipam.Allocation, pod census.Pod) bool {
	if pod.Finished || pod.Shows(a.IP) || pod.AddressUnknown && !pod.Starting {
		return false
	}
	for _, ip := range pod.Status() {
		for o := range f.owned.of(ip, pod.Ref) {
			if o.Backend == a.Backend && o.Owner.Node != "" && o.Owner.Node != pod.Node {
				return false
			}
		}
	}
	exists := f.census.HasNode(a.Owner.Node)
	named := a.Owner.Node != "" && !a.NodeLearned && (exists || f.stores[a.Backend].nodes[pod.Node])
	return a.NeverAdopted && named && pod.Node != a.Owner.Node && f.census.Node(pod.Node).Ready &&
		!slices.Contains(f.census.MayBe(a.Owner.Node), pod.Node)
}

// ofEarlierPod reports whether the allocation is older than the pod of that name, and so of
// an earlier one, where no sandbox adopts the allocation of another.
//
// If the clock of a node is slow, an allocation of the pod itself may look older. So it must be
// older by as much as madeBefore requires for different clocks, and the pod must be waiting for
// its address, on a node that can show it, or on none. A kubelet shows the address after it has
// pulled the images, which takes time.
func (f *Facts) ofEarlierPod(a *ipam.Allocation, pod census.Pod) bool {
	if !a.SandboxOwned || a.Created.IsZero() || pod.Created.IsZero() || pod.Created.Sub(a.Created) <= addWindow {
		return false
	}
	return f.waits(pod) && !pod.Shows(a.IP)
}

// waits reports whether the pod is not up yet, on a ready node or on none, and hides nothing.
func (f *Facts) waits(pod census.Pod) bool {
	visible := pod.Node == "" || f.census.Node(pod.Node).Ready && pod.Starting
	return visible && !pod.Finished && pod.InStatus == 0
}
