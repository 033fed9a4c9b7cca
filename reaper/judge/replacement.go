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
func (f *Facts) replacement(a *ipam.Allocation, pod census.Pod) (netip.Addr, bool) {
	if last := f.newest[pod.Ref]; last != nil && f.failedBefore(a, last, pod) {
		return last.IP, true
	}
	// An allocation without an interface may be of a network that is left out.
	if pod.LeavesOut && !a.SandboxOwned && a.Owner.Interface == "" {
		return netip.Addr{}, false
	}
	if pod.AddressUnknown || a.Owner.Sandbox == "" || len(pod.Addresses) == 0 || f.inStatus(a, pod, a.Owner.Sandbox) {
		return netip.Addr{}, false
	}
	for _, other := range f.shownInPlace(a, pod) {
		if other.Owner.Pod == a.Owner.Pod && other.Owner.Sandbox != "" && other.Owner.Sandbox != a.Owner.Sandbox && f.supersededBy(a, other, pod) {
			return other.IP, true
		}
	}
	return netip.Addr{}, false
}

// failedBefore reports whether the last allocation of a pod that waits for its address proves, by
// the times of both on the same ready node, that an earlier one is of a sandbox that failed.
func (f *Facts) failedBefore(a, last *ipam.Allocation, pod census.Pod) bool {
	return f.ofTry(a, pod) && a.Owner.Node == last.Owner.Node && a.Backend == last.Backend && f.madeBefore(a, last) &&
		a.Owner.Sandbox != last.Owner.Sandbox && a.Owner.Sandbox != pod.Sandbox
}

// ofTry reports whether the allocation is of an attempt to start a pod that waits for its address:
// on the node of that pod, where each sandbox has its own allocation and the store says when it
// was made.
func (f *Facts) ofTry(a *ipam.Allocation, pod census.Pod) bool {
	return a.SandboxOwned && !a.Created.IsZero() && a.Owner.Sandbox != "" && a.Owner.Pod == pod.Ref &&
		a.Owner.Node != "" && a.Owner.Node == pod.Node && f.waits(pod)
}

// shownInPlace returns the allocations that the pod shows instead of this one.
//
// If each sandbox has its own allocation, they are any of the same store, by sandbox or
// address. If sandboxes adopt allocations, they are those of the same pool, on the
// interface of this allocation. Old versions of plugins named no interface: such an
// allocation may belong to any interface.
func (f *Facts) shownInPlace(a *ipam.Allocation, pod census.Pod) []*ipam.Allocation {
	var shown []*ipam.Allocation
	if a.SandboxOwned {
		if pod.Sandbox == a.Owner.Sandbox {
			return nil
		}
		for _, other := range f.owned.sandboxes.others(nil, a, pod.Sandbox) {
			if other.Backend == a.Backend {
				shown = append(shown, other)
			}
		}
		for _, ip := range pod.Addresses {
			for other := range f.owned.of(ip, a.Owner.Pod) {
				if other.Backend == a.Backend {
					shown = append(shown, other)
				}
			}
		}
		return shown
	}
	for _, i := range pod.Interfaces {
		for _, ip := range i.Addresses {
			for other := range f.owned.of(ip, a.Owner.Pod) {
				same := other.Backend == a.Backend && other.Pool == a.Pool && other.IP != a.IP
				if same && mayBelongTo(a, i.Name) && mayBelongTo(other, i.Name) {
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
func (f *Facts) supersededBy(a, other *ipam.Allocation, pod census.Pod) bool {
	switch {
	case a.SandboxOwned && !a.Created.IsZero() && !other.Created.IsZero():
		return f.madeBefore(a, other)
	case f.inStatus(a, pod, other.Owner.Sandbox):
		return true
	}
	return !a.SandboxOwned && a.NeverAdopted && a.Owner.Interface == "" && other.Owner.Interface != ""
}

// madeBefore reports whether the times of two allocations prove that the other one is later. On
// another node, the clock may differ, so the times must be further apart. A time in the future
// comes from a wrong clock, and proves nothing.
func (f *Facts) madeBefore(a, other *ipam.Allocation) bool {
	skew := addWindow
	if a.Owner.Node != "" && other.Owner.Node == a.Owner.Node {
		skew = 0
	}
	return other.Created.Sub(a.Created) > skew && !other.Created.After(f.now)
}

// inStatus reports whether a store gives an address of the pod's status to this sandbox of
// the pod. Where sandboxes adopt allocations, only those in the store of the allocation
// count: an adopted overlapping-range reservation names its first sandbox for ever.
func (f *Facts) inStatus(a *ipam.Allocation, pod census.Pod, sandbox string) bool {
	return slices.ContainsFunc(f.statusOwners(a, pod), func(o *ipam.Allocation) bool { return o.Owner.Sandbox == sandbox })
}

// hasOtherSandbox reports whether the stores give the addresses of the pod's status to
// sandboxes of the pod other than the allocation's.
func (f *Facts) hasOtherSandbox(a *ipam.Allocation, pod census.Pod) bool {
	owners := f.statusOwners(a, pod)
	return a.Owner.Sandbox != "" && len(owners) > 0 && !f.inStatus(a, pod, a.Owner.Sandbox)
}

// statusOwners returns the allocations of the pod's status that name a sandbox.
func (f *Facts) statusOwners(a *ipam.Allocation, pod census.Pod) []*ipam.Allocation {
	var owners []*ipam.Allocation
	for _, ip := range pod.Status() {
		for o := range f.owned.of(ip, pod.Ref) {
			if o.Owner.Sandbox != "" && (o.SandboxOwned || o.Backend == a.Backend) {
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
