package reaper

import "time"

// bind ties the verdicts of entries together that have the same bond. Where one
// is kept, all are; where one has to wait, all wait; and each orphan is confirmed
// together with the others.
func bind(now time.Time, verdicts []Verdict) {
	bonds := make(map[[2]string][]int)
	for i, v := range verdicts {
		if v.Reservation.Bond != "" {
			key := [2]string{v.Reservation.Backend, v.Reservation.Bond}
			bonds[key] = append(bonds[key], i)
		}
	}
	for _, members := range bonds {
		if len(members) > 1 {
			tie(now, verdicts, members)
		}
	}
}

// tie is bind for one bond.
func tie(now time.Time, verdicts []Verdict, members []int) {
	var due time.Time
	for _, i := range members {
		v := verdicts[i]
		if v.Standing == Held || v.Standing == InUse {
			keep(verdicts, members, v)
			return
		}
		if v.Due.After(due) {
			due = v.Due
		}
	}
	orphans := make([]Orphan, 0, len(members))
	for _, i := range members {
		v := &verdicts[i]
		v.Due = due
		if now.Before(due) {
			v.Standing, v.orphan = Suspected, Orphan{}
			continue
		}
		orphans = append(orphans, v.orphan)
	}
	for n, i := range members[:len(orphans)] {
		verdicts[i].orphan = orphans[n]
		verdicts[i].orphan.bond = orphans
	}
}

// keep holds whatever is bound to an entry that is kept. Where that is kept back
// for a time, the others go on to count theirs, or two would take turns for ever.
func keep(verdicts []Verdict, members []int, kept Verdict) {
	for _, i := range members {
		v := &verdicts[i]
		if v.Standing == Suspected || v.Standing == Orphaned {
			v.Standing, v.Reason, v.remember = Held, BondKept, kept.remember
			v.Note = "its sandbox has " + kept.Reservation.what() + " too: " + string(kept.Reason)
			v.Due, v.orphan = time.Time{}, Orphan{}
			if !v.remember {
				v.FirstSeen = time.Time{}
			}
		}
	}
}
