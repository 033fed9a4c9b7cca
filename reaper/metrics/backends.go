package metrics

import (
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// statuses are all statuses of a backend.
var statuses = []ipam.Status{ipam.StatusOK, ipam.StatusPartial, ipam.StatusFailed, ipam.StatusSkipped}

// backends adds the metrics of each backend.
func (g gauges) backends(r report.Report) {
	status := g.family("backend_status",
		"1 for the status of the backend in the last run, 0 for the other statuses.", labelBackend, labelStatus)
	allocations := g.family("allocations",
		"Allocations that the last run listed, by verdict. Left out for a backend that was skipped or failed, and if pods could not be listed.",
		labelBackend, labelVerdict)
	planned := g.family("allocations_planned",
		"Orphans, which the last run planned to release. A dry run releases none of them, nor does a run whose plan a limit refused.", labelBackend)
	released := g.family("allocations_released",
		"Allocations that the last run released.", labelBackend)
	changed := g.family("allocations_changed",
		"Planned allocations that changed hands, or whose owner came back, before their release.", labelBackend)
	deleting := g.family("allocations_deleting",
		"Planned allocations whose deletion waits for finalizers.", labelBackend)
	failed := g.family("allocations_failed",
		"Planned allocations whose release failed, or is not known to have succeeded.", labelBackend)
	undecoded := g.family("undecoded_objects",
		"Objects beside the pools, such as network attachments, that the last run could not decode. It releases nothing that they may protect.", labelBackend)

	blind := r.Blind()
	for _, b := range r.Backends {
		for _, each := range statuses {
			status.add(one(b.Status == each), b.Name, each.String())
		}
		listed := b.Status == ipam.StatusOK || b.Status == ipam.StatusPartial
		if listed && !blind {
			allocations.add(float64(b.InUse), b.Name, judge.InUse.String())
			allocations.add(float64(b.Held), b.Name, judge.Held.String())
			allocations.add(float64(b.Suspected), b.Name, judge.Suspected.String())
			allocations.add(float64(b.Planned), b.Name, judge.Orphaned.String())
			planned.add(float64(b.Planned), b.Name)
		}
		if listed {
			undecoded.add(float64(len(b.Undecoded)), b.Name)
		}
		// A run that waits may release something before a later listing fails.
		if listed || b.Released > 0 {
			released.add(float64(b.Released), b.Name)
			changed.add(float64(b.Changed), b.Name)
			deleting.add(float64(b.Deleting), b.Name)
			failed.add(float64(b.Failed), b.Name)
		}
	}
}

// seconds returns a time as Unix time.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
