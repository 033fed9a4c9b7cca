package reaper

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// maxClaims is how many pods with claims a report names one by one.
const maxClaims = 5

// A claim is what the annotations of one pod alone keep. The pod shows the addresses, or
// hides which ones it has.
type claim struct {
	pod         PodRef
	hides       bool
	allocations int
	example     string
	named       bool // one of the allocations names another pod
}

// claimsOf returns the claims of pods on allocations that do not name them, the largest
// first. An allocation counts if the rules would give it up without these claims: it has
// no owner, and only its grace period would keep it. Protections and groups are not asked,
// so these may keep it too. An empty handle does not count, because it takes no address.
func claimsOf(decisions []Decision) []claim {
	shown := make(map[PodRef]*claim)
	hidden := claim{hides: true} // that of each pod that hides addresses
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
	claims := make([]claim, 0, len(shown))
	for _, c := range shown {
		claims = append(claims, *c)
	}
	if hidden.allocations > 0 {
		for _, pod := range unclaimed.census.veiled {
			hidden.pod = pod
			claims = append(claims, hidden)
		}
	}
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(b.allocations, a.allocations), strings.Compare(a.pod.String(), b.pod.String()))
	})
	return claims
}

// add adds an allocation to those that the claim keeps.
func (c *claim) add(a *Allocation) {
	if c.allocations == 0 {
		c.example = a.label()
	}
	c.allocations++
	c.named = c.named || a.namesPod() && !a.Inferred
}

// claimants returns the pods that show what may be the only reason of the decision. It
// reports whether the reason may be the pods that hide addresses.
func (d *Decision) claimants() (pods []PodRef, hides bool) {
	a, f := d.Allocation, d.facts
	switch {
	case a.EmptyHandle:
		return nil, false
	case d.Verdict == Held && d.Reason == OwnerUnknown:
		return nil, len(f.census.veiled) > 0
	case d.Verdict != InUse || d.Reason != AddressInUse && a.namesPod():
		return nil, false
	}
	ips := []netip.Addr{a.IP}
	if a.Protects != nil {
		ips = a.Protects.IPs
	}
	refs := make(map[PodRef]bool)
	for _, ip := range ips {
		for pod := range f.census.showing(ip) {
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

// sentence says what the annotations of the pod keep, and what to do if they are false.
func (c claim) sentence() string {
	if c.hides {
		return fmt.Sprintf("pod %s may have addresses that it does not show: its network-status is missing, cannot be decoded, or leaves out a network for which it asks. "+
			"That keeps allocations that name no pod: %d, such as %s. Correct its annotations", c.pod, c.allocations, c.example)
	}
	hint := "correct them"
	if c.named {
		hint += ", or set evidence.annotations to own"
	}
	return fmt.Sprintf("only annotations of pod %s keep allocations that do not name it: %d, such as %s. "+
		"If the annotations are false, %s", c.pod, c.allocations, c.example, hint)
}

// warnOfClaims names the pods whose annotations alone keep what others leaked.
func (r *run) warnOfClaims(decisions []Decision) {
	claims := claimsOf(decisions)
	for _, c := range claims[:min(len(claims), maxClaims)] {
		r.warn(c.sentence())
	}
	if more := len(claims) - maxClaims; more > 0 {
		r.warn(fmt.Sprintf("annotations of %d more pods keep allocations that do not name them", more))
	}
}
