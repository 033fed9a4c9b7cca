package storm

import "time"

// An unmaking is the deletion of a reservation by a DEL, according to its own log. A DEL deletes by
// the address alone, even if the reservation names another owner.
type unmaking struct {
	reservation string
	by          *sandbox
	began       time.Time
	ended       time.Time
}

// lost implements ipam. Two things are the plugin's own doing; both can cost a reservation, but
// never an entry of a pool:
//
//   - an ADD that tries again forgets to reserve, according to its own log;
//   - a DEL deletes its address's reservation even if it names another owner, according to its own
//     log. So a late DEL takes it from a pod that came back and adopted it, and a DEL of a pod that
//     shares an address takes the other's.
//
// What a DEL did never excuses a release that the reaper reports between the ADD and the finding.
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
