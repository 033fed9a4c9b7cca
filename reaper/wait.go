package reaper

import "time"

// rounding is by how much the ledger may move a time.
const rounding = time.Second

// lastDue returns when the last grace period ends of what is suspected, however
// the ledger may round it; the zero time where nothing is.
func (r *Report) lastDue() time.Time {
	var last time.Time
	for _, e := range r.Entries {
		if e.Verdict == Suspected {
			last = latest(last, e.Due.Add(rounding))
		}
	}
	return last
}

// nextDue returns when the next one ends, but none after the end; the zero time
// where there is none.
func (r *Report) nextDue(end time.Time) time.Time {
	var next time.Time
	for _, e := range r.Entries {
		if e.Verdict != Suspected {
			continue
		}
		due := e.Due.Add(rounding)
		if !e.Due.After(end) && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}
