package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// ProtectedPools returns what protects each pool whose addresses are all
// protected, if the pool has an ownerless address that is kept for that reason. The warnings
// name these pools.
//
// It does not count a pool whose ownerless addresses all happen to be protected. That is
// the usual state of a pool with a protected address: all its other leaks are released.
func ProtectedPools(inv ipam.Inventory, decisions []Decision) (found map[ipam.PoolRef]string, warnings []string) {
	kept := make(map[ipam.PoolRef]bool)
	for _, d := range decisions {
		if d.Reason == Protected && d.Allocation.HoldsAddress() {
			kept[ipam.PoolRef{Backend: d.Allocation.Backend, Name: d.Allocation.Pool}] = true
		}
	}
	if len(kept) == 0 {
		return nil, nil
	}
	objects := protectionsOf(inv)
	overAll := objects.unread // what protects every address of every pool
	if overAll == "" && len(objects.all) > 0 {
		overAll = objects.all[0].Name + " may name it: " + objects.all[0].Unreadable
	}
	found = make(map[ipam.PoolRef]string)
	names := make(map[string][]string) // of the pools, by what protects them
	var order []string
	for _, l := range inv.Listings {
		for _, pool := range l.Pools {
			id := ipam.PoolRef{Backend: l.Backend, Name: pool.Name}
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

// ExcessWarnings names the pods and the virtual machines that show too much.
func ExcessWarnings(p policy.Policy, c census.Census) []string {
	names := c.AllShowingTooMuch(p.Pods.Unnamed == policy.Release && p.Pods.Finished != policy.Release)
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return []string{"allocations that name no pod, or a pod of the same namespace, are kept because of too many addresses on " + printable.Some(names)}
}

// FenceWarnings names the nodes that have the taint out-of-service and are ready, and says what to
// do.
func FenceWarnings(c census.Census) []string {
	var names []string
	for name := range c.Nodes() {
		if n := c.Node(name); n.Ready && n.OutOfService {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return []string{"the taint node.kubernetes.io/out-of-service does not count on a ready node, but will as soon as the node is not ready, " +
		"even if its pods still run: " + printable.Some(names) + ". Remove it with kubectl taint nodes NODE node.kubernetes.io/out-of-service-"}
}

// A claim is what one claimant alone keeps.
type claim struct {
	by          census.Claimant // the zero Claimant stands for all pods that hide which addresses they have
	allocations int
	example     string
	named       bool // one of the allocations names another pod
}

// claimsOf returns the claims of pods and virtual machines on allocations that do not name
// them, the largest first. Protections and groups are not asked, so they may keep an allocation, too.
func claimsOf(decisions []Decision) []claim {
	found := make(map[census.Claimant]claim)
	for i := range decisions {
		d := &decisions[i]
		for _, by := range d.claimants {
			c := found[by]
			found[by] = claim{
				by:          by,
				allocations: c.allocations + 1,
				example:     cmp.Or(c.example, d.Allocation.Label()),
				named:       c.named || d.Allocation.NamesPod(),
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.allocations, a.allocations), strings.Compare(a.by.Ref.String(), b.by.Ref.String()))
	})
}

// ClaimWarnings names the pods whose annotations alone keep what others leaked, and the virtual
// machines whose guests do, and says what to do if they are false.
func ClaimWarnings(c census.Census, decisions []Decision) (warnings []string) {
	var shown, reported, hidden []string
	hint := "correct them"
	for _, claim := range claimsOf(decisions) {
		if claim.by == (census.Claimant{}) {
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
		text := fmt.Sprintf("%s (%d, such as %s)", claim.by.Ref, claim.allocations, claim.example)
		if claim.by.Kind == census.KindMachine {
			reported = append(reported, text)
			continue
		}
		shown = append(shown, text)
		if claim.named {
			hint = "correct them, or set evidence.annotations to own"
		}
	}
	if len(shown) > 0 {
		warnings = append(warnings, "some allocations are kept only by annotations of other pods: "+
			printable.Some(shown)+". If the annotations are false, "+hint)
	}
	if len(reported) > 0 {
		warnings = append(warnings, "some allocations of others are kept only by what the guests of virtual machines report: "+
			printable.Some(reported)+". If that is false, correct it in the guest, or stop the machine")
	}
	return append(warnings, hidden...)
}

// NotReadyWarnings counts what sandboxes keep that are not ready, and says what ends that.
func NotReadyWarnings(decisions []Decision) []string {
	kept := 0
	for _, d := range decisions {
		if d.Note == stopped {
			kept++
		}
	}
	if kept == 0 {
		return nil
	}
	return []string{printable.Counted(kept, "allocation") + " kept for sandboxes that are not ready, which crictl pods --state NotReady lists. " +
		"If the kubelet does not end them, crictl stopp ID stops one or says why that fails, and crictl rmp ID removes it: a run then releases what its plugin left"}
}

// ForeignWarnings names the nodes of stores that may be of other clusters, if anything on them is
// held for that.
func ForeignWarnings(decisions []Decision) []string {
	held, names := 0, make(map[string]bool)
	for _, d := range decisions {
		if d.Reason == NodeForeign {
			held++
			names[d.facts.Case(d.Allocation).storeNode().Name] = true
		}
	}
	if held == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s held, because the store has nodes that may be of another cluster: %s. "+
		"If no other cluster uses the store, delete those that are gone with calicoctl delete node, or set nodes.foreign to release",
		printable.Counted(held, "allocation"), printable.Some(slices.Sorted(maps.Keys(names))))}
}
