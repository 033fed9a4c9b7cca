package reaper

import "slices"

// An Omitted has the allocations that are in use and have no entry in the report, because there
// is nothing to say of them. The report counts them.
type Omitted struct {
	Selected []*Allocation
	Others   []*Allocation // the selection leaves them out
}

// All returns every one of them.
func (c Omitted) All() []*Allocation { return slices.Concat(c.Selected, c.Others) }

// Brief returns the decisions that get an entry, and which of them are selected; nil if
// all are. A release may wait for one of them, or mend it, so these stay.
func Brief(decisions []Decision, selected []bool) ([]Decision, []bool, Omitted) {
	var left Omitted
	first := make(map[int]int) // the new indices of those that others come after
	for i := range decisions {
		for _, before := range decisions[i].After {
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
				left.Selected = append(left.Selected, d.Allocation)
			} else {
				left.Others = append(left.Others, d.Allocation)
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
		if len(kept[i].After) == 0 {
			continue
		}
		d := kept[i].Revised()
		d.After = make([]int, len(kept[i].After))
		for n, before := range kept[i].After {
			d.After[n] = first[before]
		}
		kept[i] = d
	}
	return kept, keptSelected, left
}

// addressesIn returns how many of the allocations hold an address.
func addressesIn(allocations []*Allocation) int {
	n := 0
	for _, a := range allocations {
		if a.HoldsAddress() {
			n++
		}
	}
	return n
}
