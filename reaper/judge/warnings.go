package judge

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// overAll names what protects every address of the pool; it is empty if no objects do.
// The objects together must name as many of its addresses as the pool can give to pods.
func (p *protections) overAll(pool ipam.Pool) string {
	switch {
	case p.unread != "":
		return p.unread
	case len(p.all) > 0:
		return p.all[0].Name() + " may name it: " + p.all[0].Unreadable
	case pool.Capacity == nil || pool.Capacity.Cmp(big.NewInt(int64(len(p.byIP)))) > 0:
		return ""
	}
	named := make(map[string]bool)
	addresses := 0
	for ip, objects := range p.byIP {
		if !pool.Range.Contains(ip) {
			continue
		}
		addresses++
		for _, o := range objects {
			named[o.Name()] = true
		}
	}
	if pool.Capacity.Cmp(big.NewInt(int64(addresses))) > 0 {
		return ""
	}
	all := make([]string, 0, len(named))
	for name := range named {
		all = append(all, name)
	}
	slices.Sort(all)
	if len(all) > 1 {
		return fmt.Sprintf("%s and %d more", all[0], len(all)-1)
	}
	return all[0]
}

// ProtectedPools returns what protects each pool of which every address is protected, by its
// backend and its name, if the pool has an address without an owner that is kept for that. The
// warnings name these pools.
//
// It does not count a pool whose ownerless addresses all happen to be protected. That is
// the usual state of a pool with a reserved address: all other leaks of it are released.
func ProtectedPools(inv ipam.Inventory, decisions []Decision) (found map[[2]string]string, warnings []string) {
	kept := make(map[[2]string]bool)
	for _, d := range decisions {
		if d.Reason == Protected && d.Allocation.HoldsAddress() {
			kept[[2]string{d.Allocation.Backend, d.Allocation.Pool}] = true
		}
	}
	if len(kept) == 0 {
		return nil, nil
	}
	objects := protectionsOf(inv)
	found = make(map[[2]string]string)
	names := make(map[string][]string) // of the pools, by what protects them
	var order []string
	for _, l := range inv.Listings {
		for _, pool := range l.Pools {
			id := [2]string{l.Backend, pool.Name}
			if !kept[id] || !pool.Range.IsValid() {
				continue
			}
			by := pool.Protected
			if by == "" {
				by = objects.overAll(pool)
			}
			if by == "" {
				continue
			}
			found[id] = by
			if names[by] == nil {
				order = append(order, by)
			}
			names[by] = append(names[by], l.Backend+" "+pool.Name)
		}
	}
	for _, by := range order {
		warnings = append(warnings, "nothing of "+printable.Some(names[by])+" is released, since every address is protected: "+by)
	}
	return found, warnings
}

// A claim is what the annotations of one pod alone keep, or those of all pods together that
// hide which addresses they have.
type claim struct {
	pod         ipam.PodRef // empty for those that hide
	allocations int
	example     string
	named       bool // one of the allocations names another pod
}

// claimsOf returns the claims of pods on allocations that do not name them, the largest
// first, and the claim of the pods that hide addresses. An allocation counts if the rules
// would give it up without these claims: it has no owner, and only its grace period would
// keep it. Protections and groups are not asked, so these may keep it too. An empty handle
// does not count, because it takes no address.
func claimsOf(decisions []Decision) (claims []claim, hidden claim) {
	shown := make(map[ipam.PodRef]*claim)
	var unclaimed *Facts
	for i := range decisions {
		d := &decisions[i]
		a := d.Allocation
		pods, hides := d.claimants()
		if len(pods) == 0 && !hides {
			continue
		}
		if unclaimed == nil {
			without := *d.facts
			without.unclaimed, unclaimed = true, &without
		}
		if without := unclaimed.ask(a); !without.waits() {
			continue
		}
		if hides {
			hidden.add(a)
		}
		for _, pod := range pods {
			if shown[pod] == nil {
				shown[pod] = &claim{pod: pod}
			}
			shown[pod].add(a)
		}
	}
	for _, c := range shown {
		claims = append(claims, *c)
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.allocations, a.allocations), strings.Compare(a.pod.String(), b.pod.String()))
	})
	return claims, hidden
}

// add adds an allocation to those that the claim keeps.
func (c *claim) add(a *ipam.Allocation) {
	if c.allocations == 0 {
		c.example = a.Label()
	}
	c.allocations++
	c.named = c.named || a.NamesPod() && !a.Inferred
}

// claimants returns the pods that show what may be the only reason of the decision. It
// reports whether the reason may be the pods that hide addresses.
func (d *Decision) claimants() (pods []ipam.PodRef, hides bool) {
	a, f := d.Allocation, d.facts
	switch {
	case a.EmptyHandle:
		return nil, false
	case d.Verdict == Held && d.Reason == OwnerUnknown:
		return nil, len(f.census.Veiled()) > 0
	case d.Verdict != InUse || d.Reason != AddressInUse && a.NamesPod():
		return nil, false
	}
	ips := []netip.Addr{a.IP}
	if a.Protects != nil {
		ips = a.Protects.IPs
	}
	refs := make(map[ipam.PodRef]bool)
	for _, ip := range ips {
		for pod := range f.census.Showing(ip) {
			if pod.Ref != a.Owner.Pod {
				refs[pod.Ref] = true
			}
		}
	}
	if pod, shown := f.sandboxClaimant(a); shown {
		refs[pod] = true
	}
	return slices.Collect(maps.Keys(refs)), false
}

// ClaimWarnings names the pods whose annotations alone keep what others leaked, and says what
// to do if they are false.
func ClaimWarnings(c census.Census, decisions []Decision) (warnings []string) {
	claims, hidden := claimsOf(decisions)
	if len(claims) > 0 {
		var pods []string
		hint := "correct them"
		for _, c := range claims {
			pods = append(pods, fmt.Sprintf("%s (%d, such as %s)", c.pod, c.allocations, c.example))
			if c.named {
				hint = "correct them, or set evidence.annotations to own"
			}
		}
		warnings = append(warnings, "allocations are kept only by annotations of pods that they do not name: "+
			printable.Some(pods)+". If the annotations are false, "+hint)
	}
	if hidden.allocations > 0 {
		var pods []string
		for _, pod := range c.Veiled() {
			pods = append(pods, pod.String())
		}
		slices.Sort(pods)
		warnings = append(warnings, fmt.Sprintf("pods that do not show all of their addresses keep allocations that name no pod: %d, such as %s. "+
			"Correct the annotations of %s: network-status is missing, cannot be decoded, or leaves out a network for which the pod asks",
			hidden.allocations, hidden.example, printable.Some(pods)))
	}
	return warnings
}
