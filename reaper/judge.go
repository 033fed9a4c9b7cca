package reaper

import (
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// Judge makes one decision for every allocation of the inventory, in the order of the
// inventory. It is pure: the same arguments give the same decisions. A census that
// began before the inventory was complete is not believed.
//
// The decisions come from the rules. Then there are three steps, each from decisions
// to decisions. First, protections keep addresses of other allocations. Second, the
// allocations of a group are kept together. Third, an allocation that protects others
// waits until they are released.
func Judge(now time.Time, p policy.Policy, inv Inventory, c Census, l Ledger) []Decision {
	f := NewFacts(now, p, inv, c, l)
	decisions := make([]Decision, 0, inv.Size())
	equal := newSharing()
	for _, listing := range inv.Listings {
		for _, pool := range listing.Pools {
			for i := range pool.Allocations {
				decisions = append(decisions, f.decide(&pool.Allocations[i], equal))
			}
		}
	}
	protections := protectionsOf(inv)
	decisions = protections.hold(f, decisions)
	decisions = keepGroups(decisions)
	return protections.release(f, decisions)
}

var (
	table     = slices.Concat(Rules(), NodeRules())
	firstNode = len(Rules()) // the index of the first of NodeRules
)

// decide locates the allocation and asks the rules.
func (f *Facts) decide(a *Allocation, equal *sharing) Decision {
	located, known := f.locate(a, &equal.located)
	ruling := f.ask(located)
	if ruling.Verdict == InUse {
		known.restored = time.Time{} // the restore was right, and is over
	}
	known.last = f.hung(located, ruling.Verdict == InUse, known.last)
	switch {
	case ruling.plain() && located.Owner.Pod == a.Owner.Pod:
		located = a // Completed finds the rest again
	case located != a:
		own := *located // equal.located is for the next one
		located = &own
	}
	return Decision{Allocation: located, Ruling: equal.ruling(ruling), facts: f, known: equal.knowledge(known)}
}

// ask asks the rules one after the other. If no rule matches, the allocation is kept.
func (f *Facts) ask(a *Allocation) Ruling {
	first, end := 0, firstNode
	if a.ByRuntime {
		first, end = firstNode, len(table)
	}
	for i := first; i < end; i++ {
		rule := &table[i]
		if r, ok := rule.Match(f, a); ok {
			r.Reason, r.Ownerless = rule.Reason, rule.Ownerless
			if rule.Gives != Orphaned { // else Match has set it, by the grace period
				r.Verdict = rule.Gives
			}
			r.Rule, r.keepSeen = i+1, rule.keepsTime()
			return r
		}
	}
	return Ruling{Verdict: Held, Reason: OwnerUnknown}
}
