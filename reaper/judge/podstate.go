package judge

import (
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/census"
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

// state returns how the pod that the allocation names relates to it, and the address of a later
// sandbox. Only a pod that exists may be evidence against an allocation.
func (c *Case) state() (podState, netip.Addr) {
	if !c.stateKnown {
		c.podState, c.later = c.findState()
		c.stateKnown = true
	}
	return c.podState, c.later
}

// findState works out what state keeps.
//
// The stronger reason is asked first, except for a finished pod that shows the address: the
// allocation is surely its own.
func (c *Case) findState() (podState, netip.Addr) {
	none := netip.Addr{}
	switch pod := c.Pod; {
	case c.Presence != census.Present:
		return noPod, none
	case !c.HoldsAddress():
		return itsPod, none
	case pod.Finished && pod.Shows(c.IP):
		return endedPod, none
	case c.Owner.UID != "" && pod.UID != "" && c.Owner.UID != pod.UID:
		return replacedPod, none
	case c.moved():
		return movedPod, none
	case c.ofEarlierPod():
		return youngerPod, none
	}
	if later, replaced := c.replacement(); replaced {
		return otherSandboxed, later
	}
	if c.Pod.Finished {
		return endedPod, none
	}
	return itsPod, none
}

// is reports whether the state of the allocation's pod is the given one.
func (c *Case) is(want podState) bool {
	state, _ := c.state()
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
func (c *Case) moved() bool {
	pod := c.Pod
	if pod.Finished || pod.Shows(c.IP) || pod.AddressUnknown && !pod.Starting {
		return false
	}
	for _, ip := range pod.Status() {
		for o := range c.owned.of(ip, pod.Ref) {
			if o.Backend == c.Backend && o.Owner.Node != "" && o.Owner.Node != pod.Node {
				return false
			}
		}
	}
	exists := c.census.HasNode(c.Owner.Node)
	named := c.Owner.Node != "" && !c.nodeLearned && (exists || c.stores[c.Backend].nodes[pod.Node])
	return c.NeverAdopted() && named && pod.Node != c.Owner.Node && c.census.Node(pod.Node).Ready &&
		!slices.Contains(c.census.MayBe(c.Owner.Node), pod.Node)
}

// ofEarlierPod reports whether the allocation is older than the pod of that name, and so of
// an earlier one, where no sandbox adopts the allocation of another.
//
// If the clock of a node is slow, an allocation of the pod itself may look older. So it must be
// older by as much as madeBefore requires for different clocks, and the pod must be waiting for
// its address, on a node that can show it, or on none. A kubelet shows the address after it has
// pulled the images, which takes time.
func (c *Case) ofEarlierPod() bool {
	pod := c.Pod
	if !c.SandboxOwned() || c.Created.IsZero() || pod.Created.IsZero() || pod.Created.Sub(c.Created) <= addWindow {
		return false
	}
	return c.waits(pod) && !pod.Shows(c.IP)
}

// waits reports whether the pod is not up yet, on a ready node or on none, and hides nothing.
func (f *Facts) waits(pod census.Pod) bool {
	visible := pod.Node == "" || f.census.Node(pod.Node).Ready && pod.Starting
	return visible && !pod.Finished && pod.InStatus == 0
}
