package reaper

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
)

// A claim is what the annotations of one pod alone keep, or those of all pods together that
// hide which addresses they have.
type claim struct {
	pod         PodRef // empty for those that hide
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
	shown := make(map[PodRef]*claim)
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
func (c *claim) add(a *Allocation) {
	if c.allocations == 0 {
		c.example = a.Label()
	}
	c.allocations++
	c.named = c.named || a.NamesPod() && !a.Inferred
}

// claimants returns the pods that show what may be the only reason of the decision. It
// reports whether the reason may be the pods that hide addresses.
func (d *Decision) claimants() (pods []PodRef, hides bool) {
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
	refs := make(map[PodRef]bool)
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
func ClaimWarnings(c Census, decisions []Decision) (warnings []string) {
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
