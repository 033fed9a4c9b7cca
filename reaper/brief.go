package reaper

import "slices"

// An omitted has the allocations that are in use and have no entry in the report, because there
// is nothing to say of them. The report counts them.
type omitted struct {
	selected []*Allocation
	others   []*Allocation // the selection leaves them out
}

// all returns every one of them.
func (c omitted) all() []*Allocation { return slices.Concat(c.selected, c.others) }

// brief returns the decisions that get an entry, and which of them are selected; nil if
// all are. A release may wait for one of them, or mend it, so these stay.
func brief(decisions []Decision, selected []bool) ([]Decision, []bool, omitted) {
	var left omitted
	first := make(map[int]int) // the new indices of those that others come after
	for i := range decisions {
		for _, before := range decisions[i].after {
			first[before] = 0
		}
	}
	var kept []Decision
	var keptSelected []bool
	if selected != nil {
		keptSelected = []bool{}
	}
	for i := range decisions {
		d := &decisions[i]
		_, awaited := first[i]
		if d.plain() && !awaited && !d.Allocation.Interrupted {
			if selected == nil || selected[i] {
				left.selected = append(left.selected, d.Allocation)
			} else {
				left.others = append(left.others, d.Allocation)
			}
			continue
		}
		if awaited {
			first[i] = len(kept)
		}
		kept = append(kept, *d)
		if selected != nil {
			keptSelected = append(keptSelected, selected[i])
		}
	}
	for i := range kept {
		if len(kept[i].after) == 0 {
			continue
		}
		d := kept[i].revised()
		d.after = make([]int, len(kept[i].after))
		for n, before := range kept[i].after {
			d.after[n] = first[before]
		}
		kept[i] = d
	}
	return kept, keptSelected, left
}

// addressesIn returns how many of the allocations hold an address.
func addressesIn(allocations []*Allocation) int {
	n := 0
	for _, a := range allocations {
		if a.holdsAddress() {
			n++
		}
	}
	return n
}
