package reaper

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// surveyTimeout is how long the survey of one backend may take. A run goes on without it.
const surveyTimeout = 20 * time.Second

// survey adds the networks of the stores that were listed to the report. It returns warnings
// about what it does not know.
func survey(ctx context.Context, backends []ipam.Backend, inv ipam.Inventory, r *report.Report) (warnings []string) {
	for _, l := range inv.Listings {
		i := slices.IndexFunc(backends, func(b ipam.Backend) bool { return b.Name() == l.Backend })
		if i < 0 || l.Status == ipam.StatusFailed || l.Status == ipam.StatusSkipped {
			continue
		}
		s, ok := backends[i].(ipam.Surveyor)
		if !ok {
			continue
		}
		timed, cancel := context.WithTimeout(ctx, surveyTimeout)
		networks, err := s.Survey(timed, l.Pools)
		cancel()
		if err != nil {
			warnings = append(warnings, l.Backend+": the usage of some networks is unknown: "+printable.Error(err))
		}
		if left := r.AddNetworks(l, networks); left > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: %d networks that have no pool are not in the report, beside %d that are", l.Backend, left, report.MaxEmptyNetworks))
		}
	}
	return warnings
}
