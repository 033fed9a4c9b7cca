package reaper

import (
	"net/netip"
	"slices"

	"github.com/ip-reaper/ip-reaper/policy"
)

// shownBy returns a pod that shows the allocation's address, and so protects
// it, whoever the entry names.
//
// A pod that another entry of the same backend gives this very address, in
// another network, is no witness: the address that it shows is that one. A
// finished pod is none where the policy releases what finished pods hold, nor
// for its own entry.
func shownBy(p policy.Policy, c Census, o Orphan) (PodRef, bool) {
	r := o.allocation
	for _, pod := range c.showing(r.IP) {
		if pod.Finished && (pod.Ref == r.Owner.Pod || p.Pods.Finished == policy.Release) {
			continue
		}
		if pod.Ref == r.Owner.Pod || !o.claimedElsewhere(pod.Ref) {
			return pod.Ref, true
		}
	}
	return PodRef{}, false
}

// claimedElsewhere reports whether the pod has an entry of its own for this
// address, in another pool of another network.
func (o Orphan) claimedElsewhere(pod PodRef) bool {
	for _, c := range o.claims[o.allocation.IP] {
		known := c.network != "" && o.pool.Network != ""
		if c.Owner.Pod == pod && c.Pool != o.allocation.Pool && known && c.network != o.pool.Network {
			return true
		}
	}
	return false
}

// superseded reports whether the pod proves that it has another address instead
// of this entry's, and which.
//
// Where each sandbox has an entry of its own, the proof is that the pod shows
// another sandbox, and addresses; or, where it shows no sandbox, an address that a
// later sandbox got. Elsewhere it is that the interface of this
// entry has another address of the same pool now: one that the pod shows on that
// interface and that a sibling entry gives to it. An entry that names no
// interface, as old versions of plugins wrote them, may be any interface's.
func superseded(pod Pod, o Orphan) (netip.Addr, bool) {
	r := o.allocation
	if r.SandboxOwned {
		switch {
		case pod.AddressUnknown || r.Owner.Sandbox == "" || pod.Sandbox == r.Owner.Sandbox || len(pod.Addresses) == 0:
			return netip.Addr{}, false
		case pod.Sandbox == "":
			return o.laterSandbox(pod)
		}
		return pod.Addresses[0], true
	}
	if pod.AddressUnknown || len(pod.Interfaces) == 0 {
		return netip.Addr{}, false
	}
	for _, sibling := range o.pool.Allocations {
		if sibling.Owner.Pod != r.Owner.Pod || !sibling.saysWhose() || sibling.IP == r.IP {
			continue
		}
		for name, shown := range pod.Interfaces {
			if mayBe(r, name) && mayBe(sibling, name) && slices.Contains(shown, sibling.IP) {
				return sibling.IP, true
			}
		}
	}
	return netip.Addr{}, false
}

// mayBe reports whether the entry may be that of the interface.
func mayBe(r Allocation, name string) bool {
	return r.Owner.Interface == "" || r.Owner.Interface == name
}

// outlived returns an address that the pod shows and that a later sandbox of its
// got. The kubelet makes a sandbox only when the one before is dead; that a pod of
// that name had on another node may have gone by another clock.
func (o Orphan) laterSandbox(pod Pod) (netip.Addr, bool) {
	r := o.allocation
	if r.Created.IsZero() {
		return netip.Addr{}, false
	}
	for _, shown := range pod.Addresses {
		for _, c := range o.claims[shown] {
			if c.Owner.Pod != r.Owner.Pod || c.Owner.Sandbox == "" || c.Owner.Sandbox == r.Owner.Sandbox {
				continue
			}
			skew := addWindow
			if r.Owner.Node != "" && c.Owner.Node == r.Owner.Node {
				skew = 0
			}
			if c.Created.Sub(r.Created) > skew {
				return shown, true
			}
		}
	}
	return netip.Addr{}, false
}
