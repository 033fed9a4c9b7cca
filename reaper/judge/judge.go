package judge

import (
	"slices"
	"time"
	"unique"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// Judge makes one decision for every allocation of the inventory, in the order of the
// inventory. It is pure: the same arguments give the same decisions. A census that
// began before the inventory was complete is not believed.
//
// The decisions come from the rules. Then three steps each change some decisions. First,
// protections keep addresses of other allocations. Second, the allocations of a group
// are kept together. Third, an allocation that protects others waits until they are
// released.
func Judge(now time.Time, p policy.Policy, inv ipam.Inventory, c census.Census, l ledger.Ledger) []Decision {
	f := NewFacts(now, p, inv, c, l)
	decisions := make([]Decision, 0, inv.Size())
	equal := &sharing{rulings: make(map[plainRuling]*Ruling)}
	for _, listing := range inv.Listings {
		for _, pool := range listing.Pools {
			for i := range pool.Allocations {
				equal.one.open(f, &pool.Allocations[i])
				decisions = append(decisions, equal.one.decide(equal))
			}
		}
	}
	protections := protectionsOf(inv)
	protections.hold(f, decisions)
	keepGroups(decisions)
	protections.release(f, decisions)
	return decisions
}

var (
	table     = slices.Concat(Rules(), NodeRules())
	firstNode = len(Rules()) // the index of the first of NodeRules
)

// decide completes the case and asks the rules.
func (c *Case) decide(equal *sharing) Decision {
	listed := c.Allocation
	c.complete()
	ruling := c.ask()
	if ruling.Verdict == InUse {
		c.known.restored = time.Time{} // the restore was right, and is over
	}
	c.known.last = c.hung(ruling.Verdict == InUse)
	completed := c.Allocation
	switch {
	case ruling.plain() && completed.Owner.Pod == listed.Owner.Pod:
		completed = listed // Completed finds the rest again
	case completed != listed:
		own := *completed // the case is for the next one
		completed = &own
	}
	return Decision{Allocation: completed, Ruling: equal.ruling(ruling), facts: c.Facts, known: unique.Make(c.known)}
}

// ask asks the rules in order. If no rule matches, the allocation is kept.
func (c *Case) ask() Ruling {
	first, end := 0, firstNode
	if c.ByRuntime {
		first, end = firstNode, len(table)
	}
	for i := first; i < end; i++ {
		rule := &table[i]
		if r, ok := rule.Match(c); ok {
			r.Reason, r.Ownerless = rule.Reason, rule.Ownerless
			if rule.Gives != Orphaned { // otherwise Match set it, by the grace period
				r.Verdict = rule.Gives
			}
			r.Rule, r.keepSeen = i+1, rule.keepsTime()
			return r
		}
	}
	return Ruling{Verdict: Held, Reason: OwnerUnknown}
}

// A sharing keeps equal rulings once. Almost all allocations of a cluster are in use for one of a
// few reasons, on one of a few thousand nodes. It is for one goroutine.
type sharing struct {
	rulings map[plainRuling]*Ruling
	one     Case // the one being decided
}

// A plainRuling has everything that tells two plain rulings apart.
type plainRuling struct {
	rule     int
	evidence Evidence
}

// plain reports whether the allocation is in use and only one source says so. A report has
// nothing to say about it.
func (r *Ruling) plain() bool {
	return r.Verdict == InUse && r.Note == "" && r.ChangedBy == "" && len(r.Evidence) == 1
}

// ruling returns a ruling that is equal to this one. Only plain ones are shared.
func (s *sharing) ruling(r Ruling) *Ruling {
	if !r.plain() {
		own := r // only what is kept costs memory
		return &own
	}
	key := plainRuling{r.Rule, r.Evidence[0]}
	if have := s.rulings[key]; have != nil {
		return have
	}
	own := r
	s.rulings[key] = &own
	return &own
}

// Completed returns the allocation with what the rules knew about it: the Allocation
// itself, unless the ruling is plain.
func (d *Decision) Completed() *ipam.Allocation {
	if !d.plain() {
		return d.Allocation
	}
	c := d.facts.Case(d.Allocation)
	c.complete()
	return c.Allocation
}

// An AskedRule is a rule that was asked. Only the last one can have matched.
type AskedRule struct {
	Number  int    `json:"number"` // as docs/verdicts.md counts
	Reason  Reason `json:"reason"`
	Doc     string `json:"doc"`
	Matched bool   `json:"matched"`
}

// AskedUntil returns the rules of the table that were asked until the one with this number
// matched. If none did, the number is 0: all rules for pods were asked.
func AskedUntil(number int) []AskedRule {
	first, end := 0, number
	switch {
	case number > firstNode:
		first = firstNode
	case number == 0:
		end = firstNode
	}
	asked := make([]AskedRule, 0, end-first)
	for i := first; i < end; i++ {
		asked = append(asked, AskedRule{Number: i + 1, Reason: table[i].Reason, Doc: table[i].Doc, Matched: i+1 == number})
	}
	return asked
}

// Remedies returns what would change the decision: what its rule advises, or the step after the
// rules that keeps the allocation.
func (s Subject) Remedies() []Remedy {
	switch {
	case s.Rule == 0:
		return say(examine)(s)
	case s.ChangedBy == "" || s.Verdict == Suspected || s.Verdict == Orphaned:
		return table[s.Rule-1].remedies(s)
	case s.Reason == SiblingKept:
		return say("it goes with its sibling: {note}")(s)
	case s.Reason == Protected:
		return say(unprotect)(s)
	default:
		return say(standsIn)(s)
	}
}
