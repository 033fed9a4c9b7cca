package storm

import "time"

// An unmaking is that a DEL, by its own log, deleted a reservation. It does so by
// the address alone, also if the reservation names another owner.
type unmaking struct {
	reservation string
	by          *sandbox
	began       time.Time
	ended       time.Time
}

// lost implements ipam. Two things are the plugin's own doing, and both only ever
// cost a reservation, never an entry of a pool:
//
//   - an ADD that tries again forgets to reserve, by its own log;
//   - a DEL deletes the reservation of its address also if it names another owner, by its own
//     log. So a late DEL takes that of the pod that came back and has adopted it,
//     and a DEL of a pod that shares an address takes the other's.
//
// A release that the reaper reports, between the ADD and the finding, is never
// excused by what a DEL did.
func (w *whereabouts) lost(f finding, released []release) string {
	if f.what.kind != kindReservation {
		return ""
	}
	if f.of.unreserved {
		return "its ADD forgot to reserve"
	}
	for _, r := range released {
		if r.backend == "overlapping" && r.ip == f.what.name && r.ended.After(f.of.began) && r.began.Before(f.at) {
			return ""
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range w.unmakings {
		if u.reservation == f.what.name && u.by != f.of && u.ended.After(f.of.began) && u.began.Before(f.at) {
			return "the DEL of " + u.by.String() + " deleted it"
		}
	}
	return ""
}
