package reaper

import (
	"net/netip"
	"slices"
	"time"
)

// addWindow is the shortest time after which an allocation that a newer sandbox seems
// to have replaced is believed to be, whatever the policy says. While a new sandbox is
// being set up, its pod still shows the old one's address, and the new allocation
// looks like the replaced one. The kubelet gives a sandbox 4 minutes: twice its
// runtimeRequestTimeout of 2 (k8s.io/cri-client, RunPodSandbox).
const addWindow = 4 * time.Minute

// replacement returns the address that the pod has instead of this allocation's, if
// the pod proves that.
//
// Where each sandbox has an allocation of its own, the proof is that the pod shows
// another sandbox, and addresses; or, where it shows no sandbox, an address that a
// later sandbox got. Elsewhere the proof is that the interface of this allocation has
// another address of the same pool: one that the pod shows on that interface, and that
// another allocation gives to it. An allocation that names no interface, as old
// versions of plugins wrote them, may be any interface's.
func (f *Facts) replacement(a *Allocation, pod Pod) (netip.Addr, bool) {
	switch {
	case pod.AddressUnknown:
		return netip.Addr{}, false
	case a.SandboxOwned:
		return f.otherSandboxHas(a, pod)
	}
	for _, other := range f.pool(a).Allocations {
		if other.Owner.Pod != a.Owner.Pod || !other.saysWhose() || other.IP == a.IP {
			continue
		}
		for name, shown := range pod.Interfaces {
			if mayBe(*a, name) && mayBe(other, name) && slices.Contains(shown, other.IP) {
				return other.IP, true
			}
		}
	}
	return netip.Addr{}, false
}

// otherSandboxHas is replacement where each sandbox has an allocation of its own.
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
// the pod got. The kubelet makes a sandbox only when the one before is dead. A pod of
// that name on another node may have gone by another clock.
func (f *Facts) laterSandboxHas(a *Allocation, pod Pod) (netip.Addr, bool) {
	if a.Created.IsZero() {
		return netip.Addr{}, false
	}
	for _, shown := range pod.Addresses {
		for _, c := range f.stores[a.Backend].owners[shown] {
			if c.Owner.Pod != a.Owner.Pod || c.Owner.Sandbox == "" || c.Owner.Sandbox == a.Owner.Sandbox {
				continue
			}
			skew := addWindow
			if a.Owner.Node != "" && c.Owner.Node == a.Owner.Node {
				skew = 0
			}
			if c.Created.Sub(a.Created) > skew {
				return shown, true
			}
		}
	}
	return netip.Addr{}, false
}

// mayBe reports whether the allocation may be that of the interface.
func mayBe(a Allocation, name string) bool {
	return a.Owner.Interface == "" || a.Owner.Interface == name
}
