package reaper

import (
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// rounding is the most that the ledger may move a time.
const rounding = time.Second

// dues returns when the grace periods of selected allocations end, with the rounding of the
// ledger, in ascending order.
func (r *run) dues() []time.Time {
	var dues []time.Time
	for i, e := range r.report.Entries {
		if e.Verdict == judge.Suspected && r.isSelected(i) {
			dues = append(dues, e.Due.Add(rounding))
		}
	}
	slices.SortFunc(dues, time.Time.Compare)
	return dues
}
