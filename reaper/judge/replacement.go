package judge

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// addWindow is the shortest wait, for any policy, before an allocation counts as
// replaced by a newer sandbox. During the setup of a new sandbox, the pod still shows
// the address of the old one, and the new allocation looks like the replaced one. The
// kubelet gives the setup of a sandbox 4 minutes: twice its runtimeRequestTimeout of 2
// minutes (k8s.io/cri-client, RunPodSandbox).
const addWindow = 4 * time.Minute

// replacement returns the address of a later sandbox of the pod, if the store proves that
// the sandbox is later. For one UID, the kubelet makes a sandbox only when the previous one is
// dead. The sandbox of an earlier pod of that name may still be ending, and ripen waits for it.
//
// The pod must also show that sandbox or its address. That alone proves nothing: the owner
// of a pod may write any annotation on it. A pod whose sandboxes all fail shows none.
func (c *Case) replacement() (netip.Addr, bool) {
	pod := c.Pod
	if last := c.newest[pod.Ref]; last != nil && c.failedBefore(last) {
		return last.IP, true
	}
	// An allocation without an interface may be of a network that is left out.
	if pod.LeavesOut && !c.SandboxOwned() && c.Owner.Interface == "" {
		return netip.Addr{}, false
	}
	if pod.AddressUnknown || c.Owner.Sandbox == "" || len(pod.Addresses) == 0 || c.inStatus(c.Owner.Sandbox) {
		return netip.Addr{}, false
	}
	for _, other := range c.shownInPlace() {
		if other.Owner.Pod == c.Owner.Pod && other.Owner.Sandbox != "" && other.Owner.Sandbox != c.Owner.Sandbox && c.supersededBy(other) {
			return other.IP, true
		}
	}
	return netip.Addr{}, false
}

// failedBefore reports whether the last allocation of a pod that waits for its address proves, by
// the times of both on the same ready node, that an earlier one is of a sandbox that failed.
func (c *Case) failedBefore(last *ipam.Allocation) bool {
	return c.ofTry(c.Allocation, c.Pod) && c.Owner.Node == last.Owner.Node && c.Backend == last.Backend && c.madeBefore(last) &&
		c.Owner.Sandbox != last.Owner.Sandbox && c.Owner.Sandbox != c.Pod.Sandbox
}

// ofTry reports whether the allocation is of an attempt to start a pod that waits for its address:
// on the node of that pod, where each sandbox has its own allocation and the store says when it
// was made.
func (f *Facts) ofTry(a *ipam.Allocation, pod census.Pod) bool {
	return a.SandboxOwned() && !a.Created.IsZero() && a.Owner.Sandbox != "" && a.Owner.Pod == pod.Ref &&
		a.Owner.Node != "" && a.Owner.Node == pod.Node && f.waits(pod)
}

// shownInPlace returns the allocations that the pod shows instead of this one.
//
// If each sandbox has its own allocation, they are any of the same store, by sandbox or
// address. If sandboxes adopt allocations, they are those of the same pool, on the
// interface of this allocation. Old versions of plugins named no interface: such an
// allocation may belong to any interface.
func (c *Case) shownInPlace() []*ipam.Allocation {
	pod := c.Pod
	var shown []*ipam.Allocation
	if c.SandboxOwned() {
		if pod.Sandbox == c.Owner.Sandbox {
			return nil
		}
		for _, other := range c.owned.sandboxes.others(nil, c.Allocation, pod.Sandbox) {
			if other.Backend == c.Backend {
				shown = append(shown, other)
			}
		}
		for _, ip := range pod.Addresses {
			for other := range c.owned.of(ip, c.Owner.Pod) {
				if other.Backend == c.Backend {
					shown = append(shown, other)
				}
			}
		}
		return shown
	}
	for _, i := range pod.Interfaces {
		for _, ip := range i.Addresses {
			for other := range c.owned.of(ip, c.Owner.Pod) {
				same := other.Backend == c.Backend && other.Pool == c.Pool && other.IP != c.IP
				if same && mayBelongTo(c.Allocation, i.Name) && mayBelongTo(other, i.Name) {
					shown = append(shown, other)
				}
			}
		}
	}
	slices.SortFunc(shown, func(a, b *ipam.Allocation) int { return cmp.Or(a.IP.Compare(b.IP), cmp.Compare(a.Key, b.Key)) })
	return shown
}

// supersededBy reports whether the store proves that the other allocation is of a later sandbox.
// Where each sandbox has its own allocation, their times prove it. Without times, or where
// sandboxes adopt allocations, the pod's status does, or the plugin's version: one that
// names the interface is later than one that does not.
func (c *Case) supersededBy(other *ipam.Allocation) bool {
	switch {
	case c.SandboxOwned() && !c.Created.IsZero() && !other.Created.IsZero():
		return c.madeBefore(other)
	case c.inStatus(other.Owner.Sandbox):
		return true
	}
	return !c.SandboxOwned() && c.NeverAdopted() && c.Owner.Interface == "" && other.Owner.Interface != ""
}

// madeBefore reports whether the times of both allocations prove that the other one is later. On
// another node, the clock may differ, so the times must be further apart. A time in the future
// comes from a wrong clock, and proves nothing.
func (c *Case) madeBefore(other *ipam.Allocation) bool {
	skew := addWindow
	if c.Owner.Node != "" && other.Owner.Node == c.Owner.Node {
		skew = 0
	}
	return other.Created.Sub(c.Created) > skew && !other.Created.After(c.now)
}

// inStatus reports whether a store gives an address of the pod's status to this sandbox of
// the pod. Where sandboxes adopt allocations, only those in the store of the allocation
// count: an adopted overlapping-range reservation names its first sandbox for ever.
func (c *Case) inStatus(sandbox string) bool {
	return slices.ContainsFunc(c.statusOwners(), func(o *ipam.Allocation) bool { return o.Owner.Sandbox == sandbox })
}

// hasOtherSandbox reports whether the stores give the addresses of the pod's status to
// sandboxes of the pod other than the allocation's.
func (c *Case) hasOtherSandbox() bool {
	owners := c.statusOwners()
	return c.Owner.Sandbox != "" && len(owners) > 0 && !c.inStatus(c.Owner.Sandbox)
}

// statusOwners returns the allocations of the pod's status that name a sandbox.
func (c *Case) statusOwners() []*ipam.Allocation {
	var owners []*ipam.Allocation
	for _, ip := range c.Pod.Status() {
		for o := range c.owned.of(ip, c.Pod.Ref) {
			if o.Owner.Sandbox != "" && (o.SandboxOwned() || o.Backend == c.Backend) {
				owners = append(owners, o)
			}
		}
	}
	return owners
}

// mayBelongTo reports whether the allocation may belong to the interface.
func mayBelongTo(a *ipam.Allocation, iface string) bool {
	return a.Owner.Interface == "" || a.Owner.Interface == iface
}
