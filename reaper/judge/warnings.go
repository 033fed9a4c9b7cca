package judge

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// ProtectedPools returns, by backend and name, what protects each pool whose addresses are all
// protected, if the pool has an ownerless address that is kept for that reason. The warnings
// name these pools.
//
// It does not count a pool whose ownerless addresses all happen to be protected. That is
// the usual state of a pool with a reserved address: all its other leaks are released.
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
	overAll := objects.unread // what protects every address of every pool
	if overAll == "" && len(objects.all) > 0 {
		overAll = objects.all[0].Name() + " may name it: " + objects.all[0].Unreadable
	}
	found = make(map[[2]string]string)
	names := make(map[string][]string) // of the pools, by what protects them
	var order []string
	for _, l := range inv.Listings {
		for _, pool := range l.Pools {
			id := [2]string{l.Backend, pool.Name}
			by := cmp.Or(pool.Protected, overAll)
			if !kept[id] || !pool.Range.IsValid() || by == "" {
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
		warnings = append(warnings, "nothing is released from "+printable.Some(names[by])+", because every address is protected: "+by)
	}
	return found, warnings
}

// A claim is what only the annotations of one pod keep, or only those of all the pods that
// hide which addresses they have.
type claim struct {
	pod         ipam.PodRef // empty for those that hide
	allocations int
	example     string
	named       bool // one of the allocations names another pod
}

// claimsOf returns the claims of pods on allocations that do not name them, the largest
// first. An allocation counts if the rules would give it up without these claims: it has no
// owner, and only its grace period would keep it. Protections and groups are not asked, so
// they may keep it too. An empty handle does not count, because it takes no address.
func claimsOf(decisions []Decision) []claim {
	found := make(map[ipam.PodRef]claim)
	var unclaimed *Facts
	for i := range decisions {
		d := &decisions[i]
		a := d.Allocation
		pods := d.claimants()
		if len(pods) == 0 {
			continue
		}
		if unclaimed == nil {
			without := *d.facts
			without.unclaimed, unclaimed = true, &without
		}
		if without := unclaimed.ask(a); !without.waits() {
			continue
		}
		for pod := range pods {
			c := found[pod]
			found[pod] = claim{pod, c.allocations + 1, cmp.Or(c.example, a.Label()), c.named || a.NamesPod()}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.allocations, a.allocations), strings.Compare(a.pod.String(), b.pod.String()))
	})
}

// claimants returns the pods that show what may be the only reason for the decision. The zero
// PodRef stands for the pods that hide addresses.
func (d *Decision) claimants() map[ipam.PodRef]bool {
	a, f := d.Allocation, d.facts
	switch {
	case a.EmptyHandle:
		return nil
	case d.Verdict == Held && d.Reason == OwnerUnknown && len(f.census.Veiled()) > 0:
		return map[ipam.PodRef]bool{{}: true}
	case d.Verdict != InUse || d.Reason != AddressInUse && a.NamesPod():
		return nil
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
	return refs
}

// ClaimWarnings names the pods whose annotations alone keep what others leaked, and says what
// to do if they are false.
func ClaimWarnings(c census.Census, decisions []Decision) (warnings []string) {
	var shown, hidden []string
	hint := "correct them"
	for _, claim := range claimsOf(decisions) {
		if claim.pod == (ipam.PodRef{}) {
			var pods []string
			for _, pod := range c.Veiled() {
				pods = append(pods, pod.String())
			}
			slices.Sort(pods)
			hidden = append(hidden, fmt.Sprintf("%s without a pod name, such as %s, kept because some pods do not show all their addresses. "+
				"Correct the annotations of %s: network-status is missing, cannot be decoded, or leaves out a network that the pod requests",
				printable.Counted(claim.allocations, "allocation"), claim.example, printable.Some(pods)))
			continue
		}
		shown = append(shown, fmt.Sprintf("%s (%d, such as %s)", claim.pod, claim.allocations, claim.example))
		if claim.named {
			hint = "correct them, or set evidence.annotations to own"
		}
	}
	if len(shown) > 0 {
		warnings = append(warnings, "some allocations are kept only by annotations of other pods: "+
			printable.Some(shown)+". If the annotations are false, "+hint)
	}
	return append(warnings, hidden...)
}
