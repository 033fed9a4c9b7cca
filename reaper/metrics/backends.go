package metrics

import (
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// statuses are those that a backend may have.
var statuses = []reaper.Status{reaper.StatusOK, reaper.StatusPartial, reaper.StatusFailed, reaper.StatusSkipped}

// backends writes down what each backend listed, and what became of that.
func (s sheet) backends(r reaper.Report) {
	status := s.family("backend_status",
		"1 for the status that the backend had in the last run, 0 for the others.", labelBackend, labelStatus)
	allocations := s.family("allocations",
		"Allocations that the last run listed, by verdict. There is none of a backend that was skipped or failed, nor where nobody could be asked who is alive.",
		labelBackend, labelDecision)
	planned := s.family("allocations_planned",
		"Allocations that were to be released: the orphans. A dry run, and one that a limit refused, releases none of them.", labelBackend)
	released := s.family("allocations_released",
		"Allocations that the last run released.", labelBackend)
	changed := s.family("allocations_changed",
		"Allocations that were to be released, and changed hands or had their owner back before they were.", labelBackend)
	failed := s.family("allocations_failed",
		"Allocations that were to be released, and are not known to be.", labelBackend)

	judged := judged(r)
	for _, b := range r.Backends {
		for _, each := range statuses {
			status.add(one(b.Status == each), b.Name, each.String())
		}
		listed := b.Status == reaper.StatusOK || b.Status == reaper.StatusPartial
		if listed && judged {
			allocations.add(float64(b.InUse), b.Name, reaper.InUse.String())
			allocations.add(float64(b.Held), b.Name, reaper.Held.String())
			allocations.add(float64(b.Suspected), b.Name, reaper.Suspected.String())
			allocations.add(float64(b.Planned), b.Name, reaper.Orphaned.String())
			planned.add(float64(b.Planned), b.Name)
		}
		// A run that waits may have released something before a look that failed.
		if listed || b.Released > 0 {
			released.add(float64(b.Released), b.Name)
			changed.add(float64(b.Changed), b.Name)
			failed.add(float64(b.Failed), b.Name)
		}
	}
}

// judged reports whether somebody could be asked who is alive. Where nobody could,
// everything is held, and nothing is known of it.
func judged(r reaper.Report) bool {
	return !slices.ContainsFunc(r.Entries, func(e reaper.Entry) bool { return e.Reason == reaper.NoCensus })
}

// seconds is a time as Unix time.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
