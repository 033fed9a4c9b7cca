package reaper

import (
	"context"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// permitted asks once, before the first write, for the rights to release what is due. It
// returns the plan without the backends for which a right is missing. Otherwise each of
// their releases would fail separately.
func (r *run) permitted(ctx context.Context, plan judge.Plan) judge.Plan {
	if r.Access == nil || len(plan.Due) == 0 {
		return plan
	}
	var due []string
	for _, i := range plan.Due {
		if name := plan.Decisions[i].Allocation.Backend; !slices.Contains(due, name) {
			due = append(due, name)
		}
	}
	denied := r.Access(ctx, due)
	if denied.All != nil {
		r.failAndWarn(denied.All)
	}
	for _, name := range due {
		if err := denied.Backends[name]; err != nil && denied.All == nil {
			r.failAndWarn(err)
		}
	}
	allowed := make(map[int]bool, len(plan.Due))
	for _, i := range plan.Due {
		if err := denied.of(plan.Decisions[i].Allocation.Backend); err != nil {
			r.settle(i, report.Failed, err)
			continue
		}
		allowed[i] = true
	}
	r.dropGroups(plan, allowed)
	return plan.Only(allowed)
}
