package judge

import (
	"net/netip"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// ToldByEndpoints returns an allocation of each pod whose endpoint may tell which of its sandboxes is the
// last one: on the node of the pod, the store has an address for it that its status has not, and the
// status has another, or the store has several sandboxes.
func ToldByEndpoints(inv ipam.Inventory, c census.Census) []*ipam.Allocation {
	first := make(map[ipam.PodRef]*ipam.Allocation) // nil once it is among the results
	var told []*ipam.Allocation
	for a := range inv.Allocations() {
		if !a.SandboxOwned() || !a.ProvesOwner() || a.Owner.Sandbox == "" || a.Owner.Node == "" {
			continue
		}
		pod, presence := c.Pod(a.Owner.Pod)
		if presence != census.Present || pod.Node != a.Owner.Node || pod.Proves(a.IP) {
			continue
		}
		one, known := first[pod.Ref]
		switch {
		case known && one == nil:
		case pod.InStatus > 0, known && one.Owner.Sandbox != a.Owner.Sandbox:
			told, first[pod.Ref] = append(told, a), nil
		default:
			first[pod.Ref] = a
		}
	}
	return told
}

// endpoint returns the endpoint of the pod. Where the pod stands for it, the annotations are those that
// Calico writes, but anyone with access to the pod may have written them.
func (c *Case) endpoint() ipam.Endpoint {
	e := c.census.Endpoint(c.Pod.Ref)
	if e.InPod {
		e.Name, e.Sandbox, e.Addresses = c.Pod.Ref.Name, c.Pod.Sandbox, c.Pod.Addresses
	}
	return e
}

// replacedBy returns the address of the sandbox that the endpoint of a pod names, if that proves
// that the allocation is of an earlier one. The pod waits for its address on the node of both.
//
// The endpoint is written after the allocations of its sandbox, so it may name the one before. The times
// are by the clock of a node, which may have been set back between the two. So neither proves
// anything without the other, and ripen waits for an ADD that may not have written it yet.
func (c *Case) replacedBy(endpoint ipam.Endpoint) (netip.Addr, bool) {
	if !c.ofTry(c.Allocation) || c.Owner.Sandbox == c.Pod.Sandbox {
		return netip.Addr{}, false
	}
	for _, ip := range endpoint.Addresses {
		for other := range c.owned.of(ip, c.Pod.Ref) {
			if other.Backend == c.Backend && endpoint.Has(other) && c.ofTry(other) && c.madeBefore(other) {
				return ip, true
			}
		}
	}
	return netip.Addr{}, false
}

// ofTry reports whether the allocation is of an attempt to start the pod of the case, which waits for its
// address: on the node of that pod, where each sandbox has its own allocation and the store says when
// it was made.
func (c *Case) ofTry(a *ipam.Allocation) bool {
	return a.SandboxOwned() && !a.Created.IsZero() && a.Owner.Node != "" && a.Owner.Node == c.Pod.Node && c.waits(c.Pod)
}

// ByEndpoints returns an allocation of each pod whose endpoint may show that what counts as replaced is not:
// one of those, on the node of the pod.
func ByEndpoints(orphans []Orphan) []*ipam.Allocation {
	known := make(map[ipam.PodRef]bool)
	var all []*ipam.Allocation
	add := func(d *Decision) {
		if d == nil || d.facts == nil || d.Reason != SandboxReplaced || !d.Allocation.SandboxOwned() {
			return
		}
		owner := d.Allocation.Owner
		if pod, _ := d.facts.census.Pod(owner.Pod); pod.Node == owner.Node && !known[owner.Pod] {
			known[owner.Pod] = true
			all = append(all, d.Allocation)
		}
	}
	for _, o := range orphans {
		add(o.decision)
		for _, sibling := range o.group {
			add(sibling)
		}
	}
	return all
}
