package reaper

import (
	"net/netip"
	"slices"
	"time"
)

// addWindow is the shortest wait, for any policy, before an allocation counts as
// replaced by a newer sandbox. During the setup of a new sandbox, the pod still shows
// the address of the old one, and the new allocation looks like the replaced one. The
// kubelet gives the setup of a sandbox 4 minutes: twice its runtimeRequestTimeout of 2
// minutes (k8s.io/cri-client, RunPodSandbox).
const addWindow = 4 * time.Minute

// replacement returns the address that the pod has in place of this allocation's, if
// the pod proves that.
//
// If each sandbox has an allocation of its own, the pod proves it by another sandbox
// and at least one address. If the pod shows no sandbox, it proves it by an address
// that a later sandbox got.
//
// If sandboxes adopt allocations, the pod proves it by another address of the same
// pool. The pod must show that address on the interface of this allocation, and
// another allocation must give it to the pod. Old versions of plugins named no
// interface: such an allocation may belong to any interface.
func (f *Facts) replacement(a *Allocation, pod Pod) (netip.Addr, bool) {
	switch {
	case pod.AddressUnknown:
		return netip.Addr{}, false
	case a.SandboxOwned:
		return f.otherSandboxHas(a, pod)
	}
	for _, other := range f.pool(a).Allocations {
		if other.Owner.Pod != a.Owner.Pod || !other.provesOwner() || other.IP == a.IP {
			continue
		}
		for name, shown := range pod.Interfaces {
			if mayBeOn(*a, name) && mayBeOn(other, name) && slices.Contains(shown, other.IP) {
				return other.IP, true
			}
		}
	}
	return netip.Addr{}, false
}

// otherSandboxHas is replacement for stores in which each sandbox has an allocation of
// its own.
func (f *Facts) otherSandboxHas(a *Allocation, pod Pod) (netip.Addr, bool) {
	switch {
	case a.Owner.Sandbox == "" || pod.Sandbox == a.Owner.Sandbox || len(pod.Addresses) == 0:
		return netip.Addr{}, false
	case pod.Sandbox == "":
		return f.laterSandboxHas(a, pod)
	}
	return pod.Addresses[0], true
}

// laterSandboxHas returns an address that the pod shows and that a later sandbox of
// the pod got. The kubelet makes a sandbox only when the one before is dead. On
// another node, the clock may differ, so the times must be further apart. A time in the
// future is of a wrong clock, and proves nothing.
func (f *Facts) laterSandboxHas(a *Allocation, pod Pod) (netip.Addr, bool) {
	if a.Created.IsZero() {
		return netip.Addr{}, false
	}
	for _, shown := range pod.Addresses {
		for _, other := range f.stores[a.Backend].owners[shown] {
			if other.Owner.Pod != a.Owner.Pod || other.Owner.Sandbox == "" || other.Owner.Sandbox == a.Owner.Sandbox {
				continue
			}
			skew := addWindow
			if a.Owner.Node != "" && other.Owner.Node == a.Owner.Node {
				skew = 0
			}
			if other.Created.Sub(a.Created) > skew && !other.Created.After(f.now) {
				return shown, true
			}
		}
	}
	return netip.Addr{}, false
}

// mayBeOn reports whether the allocation may belong to the interface.
func mayBeOn(a Allocation, iface string) bool {
	return a.Owner.Interface == "" || a.Owner.Interface == iface
}
