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

// Verdicts are what was decided about the allocations of an inventory. They do not change.
type Verdicts struct {
	// Decisions are in the order of the inventory.
	Decisions []Decision

	// InUse has the allocations in use about which there is nothing to say, and which have no
	// decision for that reason. They are in the order of the inventory.
	InUse []Live

	facts *Facts // nil if the verdicts are not from Decide
}

// A Live is an allocation that is plainly in use, as its store has it.
type Live struct {
	*ipam.Allocation
	known unique.Handle[knowledge]
	at    int32 // its place in the inventory
	rule  int32 // see Ruling.Rule
}

// Each yields what was decided about each allocation of the inventory, in its order, with the index
// of the decision. For what has none, the index is -1, and what it yields is valid until the next one.
func (v Verdicts) Each(yield func(i int, d *Decision) bool) {
	var plain Decision
	i, inUse := 0, v.InUse
	for i < len(v.Decisions) || len(inUse) > 0 {
		if len(inUse) == 0 || i < len(v.Decisions) && v.Decisions[i].at < inUse[0].at {
			if !yield(i, &v.Decisions[i]) {
				return
			}
			i++
			continue
		}
		plain = Decision{Allocation: inUse[0].Allocation, Ruling: Ruling{Verdict: InUse, Reason: table[inUse[0].rule-1].Reason}}
		if !yield(-1, &plain) {
			return
		}
		inUse = inUse[1:]
	}
}

// Judge makes one decision for every allocation of the inventory, in the order of the
// inventory. It is pure: the same arguments give the same decisions. A census that
// began before the inventory was complete is not believed.
func Judge(now time.Time, p policy.Policy, inv ipam.Inventory, c census.Census, l ledger.Ledger) []Decision {
	return Decide(now, p, inv, c, l, true).Decisions
}

// Decide is Judge that makes no decision for what is plainly in use, unless everything is set. In
// a large cluster, that is almost all there is. A Selection needs everything.
//
// The decisions come from the rules. Then two steps each change some decisions: first,
// protections keep addresses; second, the allocations of a group are kept together.
func Decide(now time.Time, p policy.Policy, inv ipam.Inventory, c census.Census, l ledger.Ledger, everything bool) Verdicts {
	f := NewFacts(now, p, inv, c, l)
	var waiting map[string]bool // groups of which an allocation waits
	kept := func(d *Decision) bool {
		return everything || !d.PlainlyInUse() || waiting[d.Allocation.Group]
	}
	var room Verdicts
	if everything {
		room.Decisions = make([]Decision, 0, inv.Size())
	} else {
		room.InUse = make([]Live, 0, inv.Size())
	}
	v := f.decideAll(inv, room, kept)
	waiting = waitingGroups(v.Decisions)
	if slices.ContainsFunc(v.InUse, func(l Live) bool { return waiting[l.Group] }) {
		v = f.decideAll(inv, room, kept) // the siblings of what waits are among the decisions now
	}
	protections := protectionsOf(inv)
	protections.hold(f, v.Decisions)
	keepGroups(v.Decisions)
	v.facts = f
	return v
}

// decideAll adds to v what the rules say about every allocation of the inventory. What is not kept
// is in use.
func (f *Facts) decideAll(inv ipam.Inventory, v Verdicts, kept func(*Decision) bool) Verdicts {
	var c Case
	var d Decision // one for all, as the case: what is not kept takes no memory
	at := int32(-1)
	for a := range inv.Allocations() {
		at++
		c.open(f, a)
		d = c.decide()
		d.at = at
		plain := !kept(&d)
		switch {
		case plain && d.Allocation.Owner.Pod == a.Owner.Pod:
			d.Allocation = a // less memory than what was completed
		case d.Allocation == &c.completed:
			d.Allocation = new(c.completed)
		}
		if plain {
			v.InUse = append(v.InUse, Live{d.Allocation, d.known, at, int32(d.Rule)})
		} else {
			v.Decisions = append(v.Decisions, d)
		}
	}
	return v
}

var (
	table     = slices.Concat(Rules(), NodeRules())
	firstNode = len(Rules()) // the index of the first of NodeRules
)

// decide completes the case and asks the rules. What was completed is that of the case, which is for
// the next one.
func (c *Case) decide() Decision {
	c.complete()
	ruling := c.ask()
	if ruling.Verdict == InUse {
		c.known.restored = time.Time{} // the restore was right, and is over
	}
	c.known.last = c.inBoot(c.hung(ruling.Verdict == InUse))
	d := Decision{
		Allocation:  c.Allocation,
		Ruling:      ruling,
		present:     c.present(),
		nodeLearned: c.nodeLearned,
		facts:       c.Facts,
		known:       unique.Make(c.known),
	}
	d.claimants = c.claimants(ruling)
	return d
}

// ask asks the rules in order. If no rule matches, the allocation is kept.
func (c *Case) ask() Ruling {
	if c.ByRuntime {
		return c.askFrom(firstNode)
	}
	return c.askFrom(0)
}

// askFrom asks the rules of the allocation's table from the one with this index on.
func (c *Case) askFrom(first int) Ruling {
	end := firstNode
	if c.ByRuntime {
		end = len(table)
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
