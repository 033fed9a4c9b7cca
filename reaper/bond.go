package reaper

import "time"

// bind ties the verdicts of entries together that have the same group. Where one
// is kept, all are; where one has to wait, all wait; and each orphan is confirmed
// together with the others.
func bind(now time.Time, decisions []Decision) {
	groups := make(map[[2]string][]int)
	for i, v := range decisions {
		if v.Allocation.Group != "" {
			key := [2]string{v.Allocation.Backend, v.Allocation.Group}
			groups[key] = append(groups[key], i)
		}
	}
	for _, members := range groups {
		if len(members) > 1 {
			tie(now, decisions, members)
		}
	}
}

// tie is bind for one group.
func tie(now time.Time, decisions []Decision, members []int) {
	var due time.Time
	for _, i := range members {
		v := decisions[i]
		if v.Verdict == Held || v.Verdict == InUse {
			keep(decisions, members, v)
			return
		}
		if v.Due.After(due) {
			due = v.Due
		}
	}
	orphans := make([]Orphan, 0, len(members))
	for _, i := range members {
		v := &decisions[i]
		v.Due = due
		if now.Before(due) {
			v.Verdict, v.orphan = Suspected, Orphan{}
			continue
		}
		orphans = append(orphans, v.orphan)
	}
	for n, i := range members[:len(orphans)] {
		decisions[i].orphan = orphans[n]
		decisions[i].orphan.group = orphans
	}
}

// keep holds whatever is bound to an entry that is kept. Where that is kept back
// for a time, the others go on to count theirs, or two would take turns for ever.
func keep(decisions []Decision, members []int, kept Decision) {
	for _, i := range members {
		v := &decisions[i]
		if v.Verdict == Suspected || v.Verdict == Orphaned {
			v.Verdict, v.Reason, v.remember = Held, SiblingKept, kept.remember
			v.Note = "its sandbox has " + kept.Allocation.what() + " too: " + string(kept.Reason)
			v.Due, v.orphan = time.Time{}, Orphan{}
			if !v.remember {
				v.FirstSeen = time.Time{}
			}
		}
	}
}
