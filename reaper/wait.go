package reaper

import (
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
)

// rounding is the most by which the ledger may move a time.
const rounding = time.Second

// lastDue returns when the last grace period of a selected allocation ends, with the
// rounding of the ledger. It returns the zero time if none is suspected.
func (r *run) lastDue() time.Time {
	var last time.Time
	for i, e := range r.report.Entries {
		if e.Verdict == judge.Suspected && r.isSelected(i) {
			if due := e.Due.Add(rounding); due.After(last) {
				last = due
			}
		}
	}
	return last
}

// nextDue returns when the next grace period of a selected allocation ends, with the
// rounding of the ledger. It ignores grace periods that are over only after the end. It
// returns the zero time if there is none.
func (r *run) nextDue(end time.Time) time.Time {
	var next time.Time
	for i, e := range r.report.Entries {
		if e.Verdict != judge.Suspected || !r.isSelected(i) {
			continue
		}
		due := e.Due.Add(rounding)
		if !e.Due.After(end) && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}
