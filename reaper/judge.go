package reaper

import (
	"cmp"
	"encoding/json"
	"slices"
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

// A Decision is a ruling on one allocation.
type Decision struct {
	// Allocation is the allocation with what the rules knew of it beside its store. One in
	// use is as it was listed, but for its pod: see Completed.
	Allocation *Allocation

	*Ruling
	facts *Facts
	known *knowledge // for the ledger; never nil
}

// A Ruling says how an allocation was decided: the verdict, its reason and its evidence.
// Decisions share equal rulings, so a Ruling never changes. A step that decides anew gives
// its decision another one (Revised).
type Ruling struct {
	Verdict Verdict
	Reason  Reason

	// Rule is the number of the rule that matched, as docs/verdicts.md counts them: those of
	// NodeRules behind those of Rules. It is 0 if none did.
	Rule int

	// ChangedBy is the step behind the rules that changed their decision: byProtection or
	// byGroup. It is empty if none did.
	ChangedBy string

	// Evidence has the sources of the decision, the most important one first. It may
	// be empty.
	Evidence []Evidence

	// Note adds a detail to the reason, such as the name of the pod that shows the
	// address. If an allocation in use has a note, store and pods disagree, and an
	// operator should look.
	Note string

	// FirstSeen is when a run first saw the allocation ownerless, without a break
	// since. Due is when its grace period or its protection ends. Both are zero
	// unless the allocation is suspected, an orphan, too young, protected for a time,
	// or a sibling of such an allocation. Due is also zero if it is kept for good, or
	// is too young.
	FirstSeen time.Time
	Due       time.Time

	Ownerless  bool  // the allocation has no owner, whether it is kept or not
	remembered bool  // the ledger keeps FirstSeen
	keepSeen   bool  // the ledger keeps the time that it has, if it has one
	After      []int // the decisions whose allocations must be released first
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

// The steps behind the rules that change decisions.
const (
	byProtection = "protection"
	byGroup      = "group"
)

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

// ripen decides by time on an ownerless allocation. It is suspected until its grace
// period is over, at least as long as the given time, and until its kubelet has ended
// it. Then it is an orphan. An interrupted release does not wait.
func (f *Facts) ripen(a *Allocation, atLeast time.Duration, note string, evidence ...Evidence) (Ruling, bool) {
	terms := f.terms(a)
	if a.Created.After(f.now) { // by the clock of its node: it counts as made now
		atLeast = max(atLeast, f.minAge(a))
	}
	r := Ruling{Verdict: Suspected, Note: note, FirstSeen: f.since(a)}
	grace := r.FirstSeen.Add(terms.Grace)
	other := r.FirstSeen.Add(atLeast)
	if until, why := f.ended(a, r.FirstSeen); until.After(other) {
		other = until
		if until.After(grace) && f.now.Before(until) {
			r.Note, evidence = cmp.Or(note, why.Says), append(evidence, why)
		}
	}
	if a.Interrupted {
		grace, other = r.FirstSeen, r.FirstSeen
	}
	r.Evidence, r.Due = evidence, latest(grace, other)
	r.remembered = r.Due.After(r.FirstSeen)
	if !f.now.Before(other) && !f.now.Add(jitter(terms.Grace)).Before(grace) {
		r.Verdict = Orphaned
		return r, true
	}
	r.Evidence = append(r.Evidence, Evidence{fromPolicy, f.termOf(a, "gracePeriod", terms.Grace)})
	return r, true
}

// since returns when the allocation was first seen ownerless, which may be now. While the
// named pod exists, another time counts than after it is gone: an allocation that only
// looked replaced was still the pod's.
func (f *Facts) since(a *Allocation) time.Time {
	return f.ledger.Since(a, f.present(a), f.now)
}

// present reports whether the pod that the allocation names exists, if that matters.
func (f *Facts) present(a *Allocation) bool {
	_, presence := f.census.Pod(a.Owner.Pod)
	return presence == Present && !a.ByRuntime
}

// jitter returns by how much a grace period may be cut short. A CronJob starts a few
// seconds late, and not by the same each time. So with a run every 15 minutes, a grace
// period of 15 minutes would otherwise end one run later. Short grace periods are exact.
func jitter(grace time.Duration) time.Duration {
	if grace < 5*time.Minute {
		return 0
	}
	return min(grace/60, 15*time.Second)
}

// waits reports whether the allocation is ownerless and nothing but its grace period
// may keep it.
func (r *Ruling) waits() bool { return r.Verdict == Suspected || r.Verdict == Orphaned }

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

// Revised returns the decision with a ruling of its own, which may be changed.
func (d Decision) Revised() Decision {
	own := *d.Ruling
	d.Ruling = &own
	return d
}

// MarshalJSON writes the verdict as its word.
func (v Verdict) MarshalJSON() ([]byte, error) { return json.Marshal(v.String()) }
