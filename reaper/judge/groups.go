package judge

import "time"

// keepGroups decides on the allocations of each group together. If one of them is
// kept, its siblings are kept. If one of them must wait, its siblings wait with it.
func keepGroups(decisions []Decision) {
	groups := make(map[string][]int) // those in which any allocation waits
	for _, d := range decisions {
		if group := d.Allocation.Group; group != "" && d.waits() {
			groups[group] = nil
		}
	}
	for i, d := range decisions {
		if _, waits := groups[d.Allocation.Group]; waits {
			groups[d.Allocation.Group] = append(groups[d.Allocation.Group], i)
		}
	}
	for _, members := range groups {
		if len(members) > 1 {
			keepGroup(decisions, members)
		}
	}
}

// keepGroup is keepGroups for one group.
func keepGroup(decisions []Decision, members []int) {
	var due time.Time
	verdict := Orphaned
	for _, i := range members {
		d := decisions[i]
		if !d.waits() {
			keepSiblings(decisions, members, d)
			return
		}
		due = latest(due, d.Due)
		if d.Verdict == Suspected {
			verdict = Suspected
		}
	}
	for _, i := range members {
		d := decisions[i]
		if d.Verdict == verdict && d.Due.Equal(due) {
			continue
		}
		d = d.Revised()
		d.Verdict, d.Due, d.ChangedBy = verdict, due, byGroup
		decisions[i] = d
	}
}

// keepSiblings holds the siblings of an allocation that is kept. If the hold is
// temporary, the siblings keep their FirstSeen; otherwise two of them would reset each
// other for ever.
func keepSiblings(decisions []Decision, members []int, kept Decision) {
	for _, i := range members {
		d := decisions[i]
		if !d.waits() {
			continue
		}
		d = d.Revised()
		d.Verdict, d.Reason, d.remembered, d.keepSeen = Held, SiblingKept, kept.remembered, kept.keepSeen
		d.ChangedBy = byGroup
		d.Note = "its sibling " + kept.Allocation.Label() + " is kept: " + string(kept.Reason)
		d.Evidence = append([]Evidence{{fromSiblings, d.Note}}, kept.Evidence...)
		d.Due = time.Time{}
		if !d.remembered {
			d.FirstSeen = time.Time{}
		}
		decisions[i] = d
	}
}
