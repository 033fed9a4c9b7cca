package reaper

import "time"

// keepGroups decides on the allocations of each group together. If one of them is
// kept, its siblings are kept. If one of them has to wait, its siblings wait with it.
func keepGroups(f *Facts, decisions []Decision) []Decision {
	groups := make(map[[2]string][]int)
	for i, d := range decisions {
		if d.Allocation.Group != "" {
			key := [2]string{d.Allocation.Backend, d.Allocation.Group}
			groups[key] = append(groups[key], i)
		}
	}
	by := make(map[int]Decision)
	for _, members := range groups {
		if len(members) > 1 {
			keepGroup(f, decisions, members, by)
		}
	}
	return changed(decisions, by)
}

// keepGroup is keepGroups for one group.
func keepGroup(f *Facts, decisions []Decision, members []int, by map[int]Decision) {
	var due time.Time
	for _, i := range members {
		d := decisions[i]
		if !d.waits() {
			keepSiblings(decisions, members, d, by)
			return
		}
		due = latest(due, d.Due)
	}
	for _, i := range members {
		d := decisions[i]
		d.Due = due
		if f.now.Before(due) {
			d.Verdict = Suspected
		}
		by[i] = d
	}
}

// keepSiblings holds the siblings of an allocation that is kept. If the hold is
// temporary, the siblings keep their FirstSeen; otherwise two of them would reset each
// other for ever.
func keepSiblings(decisions []Decision, members []int, kept Decision, by map[int]Decision) {
	for _, i := range members {
		d := decisions[i]
		if !d.waits() {
			continue
		}
		d.Verdict, d.Reason, d.remember = Held, SiblingKept, kept.remember
		d.Note = "its sibling " + kept.Allocation.label() + " is kept: " + string(kept.Reason)
		d.Evidence = append([]Evidence{{fromSiblings, d.Note}}, kept.Evidence...)
		d.Due = time.Time{}
		if !d.remember {
			d.FirstSeen = time.Time{}
		}
		by[i] = d
	}
}
