package judge

import "time"

// keepGroups decides on the allocations of each group together. If one of them is
// kept, its siblings are kept. If one of them must wait, its siblings wait with it.
func keepGroups(decisions []Decision) {
	groups, waiting := make(map[string][]int), waitingGroups(decisions)
	for i := range decisions {
		if group := decisions[i].Allocation.Group; waiting[group] {
			groups[group] = append(groups[group], i)
		}
	}
	for _, members := range groups {
		if len(members) > 1 {
			keepGroup(decisions, members)
		}
	}
}

// waitingGroups returns the groups of which an allocation waits.
func waitingGroups(decisions []Decision) map[string]bool {
	waiting := make(map[string]bool)
	for i := range decisions {
		if d := &decisions[i]; d.waits() && d.Allocation.Group != "" {
			waiting[d.Allocation.Group] = true
		}
	}
	return waiting
}

// keepGroup is keepGroups for one group.
func keepGroup(decisions []Decision, members []int) {
	var due time.Time
	verdict := Orphaned
	for _, i := range members {
		d := &decisions[i]
		if !d.waits() {
			keepSiblings(decisions, members, *d)
			return
		}
		due = latest(due, d.Due)
		if d.Verdict == Suspected {
			verdict = Suspected
		}
	}
	for _, i := range members {
		d := &decisions[i]
		if d.Verdict == verdict && d.Due.Equal(due) {
			continue
		}
		d.Verdict = verdict
		d.Due = due
		d.ChangedBy = byGroup
	}
}

// keepSiblings holds the siblings of an allocation that is kept. If the hold is
// temporary, the siblings keep their FirstSeen; otherwise two of them would reset each
// other for ever.
func keepSiblings(decisions []Decision, members []int, kept Decision) {
	for _, i := range members {
		d := &decisions[i]
		if !d.waits() {
			continue
		}
		d.Verdict = Held
		d.Reason = SiblingKept
		d.ChangedBy = byGroup
		d.remembered, d.keepSeen = kept.remembered, kept.keepSeen
		d.Note = "its sibling " + kept.Allocation.Label() + " is kept: " + string(kept.Reason)
		d.Evidence = append([]Evidence{{fromSiblings, d.Note}}, kept.Evidence...)
		d.Due = time.Time{}
		if !d.remembered {
			d.FirstSeen = time.Time{}
		}
	}
}
