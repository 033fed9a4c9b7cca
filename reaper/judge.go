package reaper

import (
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// A Verdict is the result of a decision, in one word. The zero value keeps the
// allocation.
type Verdict int

// The verdicts.
const (
	Held      Verdict = iota // it is kept, for the reason of the decision
	InUse                    // an owner has it
	Suspected                // it is ownerless, and its grace period is not over
	Orphaned                 // it is ownerless, and its grace period is over
)

// String returns the word that reports use.
func (v Verdict) String() string {
	switch v {
	case InUse:
		return "inUse"
	case Suspected:
		return "suspected"
	case Orphaned:
		return "orphan"
	default:
		return "held"
	}
}

// A Decision is the verdict on one allocation, its reason and its evidence.
type Decision struct {
	Allocation Allocation
	Verdict    Verdict
	Reason     Reason

	// Evidence has the sources of the decision, the most important one first. It may
	// be empty.
	Evidence []Evidence

	// Note adds a detail to the reason, such as the name of the pod that shows the
	// address. If an allocation in use has a note, store and pods disagree, and an
	// operator should look.
	Note string

	// FirstSeen is when a run first saw the allocation ownerless, without a break
	// since. Due is when its grace period or its protection ends. Both are zero
	// unless the allocation is suspected, an orphan, protected for a time, or a
	// sibling of such an allocation. Due is also zero if it is kept for good.
	FirstSeen time.Time
	Due       time.Time

	facts     *Facts
	ownerless bool   // the allocation has no owner, whether it is kept or not
	remember  bool   // the ledger keeps FirstSeen
	node      string // of the pod, for the ledger; empty if the store names it
	after     []int  // the decisions whose allocations must be released first
}

// Judge makes one decision for every allocation of the inventory, in the order of the
// inventory. It is pure: the same arguments give the same decisions. A census that
// began before the inventory was complete is not believed.
//
// The decisions come from the rules. Then there are three steps, each from decisions
// to decisions. First, protections keep addresses of other allocations. Second, the
// allocations of a group are kept together. Third, an allocation that protects others
// waits until they are released.
func Judge(now time.Time, p policy.Policy, inv Inventory, c Census, l Ledger) []Decision {
	f := newFacts(now, p, inv, c, l)
	decisions := make([]Decision, 0, inv.size())
	for _, listing := range inv.Listings {
		for _, pool := range listing.Pools {
			for i := range pool.Allocations {
				decisions = append(decisions, f.decide(&pool.Allocations[i]))
			}
		}
	}
	protections := protectionsOf(inv)
	decisions = protections.hold(f, decisions)
	decisions = keepGroups(f, decisions)
	return protections.release(f, decisions)
}

var table = Rules()

// decide locates the allocation and asks the rules.
func (f *Facts) decide(a *Allocation) Decision {
	node := f.node(a)
	if node != "" {
		located := *a
		located.Owner.Node = node
		a = &located
	}
	d := f.ask(a)
	d.node = node
	return d
}

// ask asks the rules one after the other. If no rule matches, the allocation is kept.
func (f *Facts) ask(a *Allocation) Decision {
	for i := range table {
		rule := &table[i]
		if d, ok := rule.Match(f, a); ok {
			d.Allocation, d.Reason, d.ownerless, d.facts = *a, rule.Reason, rule.Ownerless, f
			if rule.Gives != Orphaned { // else Match has set it, by the grace period
				d.Verdict = rule.Gives
			}
			return d
		}
	}
	return Decision{Allocation: *a, Verdict: Held, Reason: OwnerUnknown, facts: f}
}

// ripen decides by time on an ownerless allocation. It is suspected until its grace
// period is over, and at least as long as the given time. Then it is an orphan. An
// interrupted release does not wait.
func (f *Facts) ripen(a *Allocation, atLeast time.Duration, note string, evidence ...Evidence) (Decision, bool) {
	wait := max(f.terms(a).Grace, atLeast)
	if a.Interrupted {
		wait = 0
	}
	d := Decision{Verdict: Suspected, Note: note, Evidence: evidence, remember: wait > 0}
	d.FirstSeen = f.ledger.since(a.id(), f.now)
	d.Due = d.FirstSeen.Add(wait)
	if !f.now.Before(d.Due) {
		d.Verdict = Orphaned
	}
	return d, true
}

// waits reports whether the allocation is ownerless and nothing but its grace period
// may keep it.
func (d Decision) waits() bool { return d.Verdict == Suspected || d.Verdict == Orphaned }

// changed returns the decisions with some of them replaced, by index. It does not write
// to its argument.
func changed(decisions []Decision, by map[int]Decision) []Decision {
	if len(by) == 0 {
		return decisions
	}
	next := make([]Decision, len(decisions))
	copy(next, decisions)
	for i, d := range by {
		next[i] = d
	}
	return next
}
