package reaper

import (
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
)

// A Verdict says in one word what a decision concludes. The zero value keeps.
type Verdict int

// The verdicts, in the order in which an allocation loses its protection.
const (
	Held      Verdict = iota // kept, for the reason that is given
	InUse                    // an owner has it
	Suspected                // it is ownerless, but not for long enough
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

// A Decision is what is concluded of one allocation, and why.
type Decision struct {
	Allocation Allocation
	Verdict    Verdict
	Reason     Reason

	// Evidence is what the decision rests on, the most important first. It may be
	// empty.
	Evidence []Evidence

	// Note adds what the reason does not say, such as which other pod shows the
	// address. An allocation in use with a note is a disagreement that an operator
	// should see.
	Note string

	// FirstSeen is when a run first saw the allocation ownerless, without a break
	// since; Due is when its grace period is over, or its protection. Both are zero
	// unless the allocation is suspected, an orphan, protected for a time, or a
	// sibling of such an allocation. Due is also zero where it is kept for good.
	FirstSeen time.Time
	Due       time.Time

	facts     *Facts
	ownerless bool   // it has no owner, whether it is kept or not
	remember  bool   // FirstSeen, in the ledger
	node      string // where the pod is, for the ledger; empty if the store tells
	after     []int  // the decisions whose allocations must be released first
}

// Judge makes one decision for every allocation of the inventory, in its order. It is
// pure: the same arguments give the same decisions. A census that began before the
// inventory was complete is not believed.
//
// The decisions come from the rules. Three steps follow, each from decisions to
// decisions: protections keep addresses of other allocations, groups share their
// fate, and protections themselves go after all that they protect.
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

// table is made once: rules do not change.
var table = Rules()

// decide asks the rules, one after the other. An allocation that none of them matches
// is kept.
func (f *Facts) decide(a *Allocation) Decision {
	node := f.node(a)
	if node != "" {
		located := *a
		located.Owner.Node = node
		a = &located
	}
	for i := range table {
		rule := &table[i]
		if d, ok := rule.Match(f, a); ok {
			d.Allocation, d.Reason, d.ownerless = *a, rule.Reason, rule.Ownerless
			if rule.Gives != Orphaned { // time decides on the others
				d.Verdict = rule.Gives
			}
			d.facts, d.node = f, node
			return d
		}
	}
	return Decision{Allocation: *a, Verdict: Held, Reason: OwnerUnknown, facts: f, node: node}
}

// ripen decides by time on an allocation that is ownerless: suspected until its grace
// period is over, and at least that long; an orphan from then on. A release that was
// interrupted does not wait.
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

// waits reports whether the allocation is ownerless and nothing keeps it but time, if
// anything.
func (d Decision) waits() bool { return d.Verdict == Suspected || d.Verdict == Orphaned }

// changed returns the decisions with some of them replaced, by index. The argument
// stays as it is.
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
