package reaper

import (
	"errors"
	"reflect"
	"slices"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// compare judges what a round knows by the installed policy too, and returns how its verdicts differ;
// nil if the run does not ask for that. Judging is pure: it changes nothing else.
func (r *run) compare(n *round) *report.Comparison {
	if r.Installed == nil {
		return nil
	}
	p, err := n.installed, n.notInstalled
	if err == nil && !reflect.DeepEqual(p.Backends, r.Policy.Backends) {
		err = errors.New("they differ in backends, which says what is listed")
	}
	if err != nil {
		return &report.Comparison{Missing: printable.Error(err), NotInstalled: errors.Is(err, ipam.ErrNotInstalled), Changes: []report.Change{}}
	}
	verdicts := r.judge(n.now, p, n.stock, n.ledger)
	plan := judge.PlanOf(verdicts, n.inventory, r.earlier.spent).Select(n.selection.Of(verdicts.Decisions))
	c := report.Compare(verdicts, n.verdicts, n.selected)
	c.Refused, _ = r.refusals(n, plan, p)
	return c
}

// refusals returns the limits of a policy that refuse a plan, and those that would if they were not
// ignored.
func (r *run) refusals(n *round, plan judge.Plan, p policy.Policy) (refusals, ignored []judge.Refusal) {
	for _, refusal := range append(plan.Believe(p.Limits, n.census, n.ledger, n.now, p.GracePeriod.Duration), plan.Check(p.Limits, n.census)...) {
		if slices.Contains(r.IgnoreLimits, refusal.Name()) {
			ignored = append(ignored, refusal)
		} else {
			refusals = append(refusals, refusal)
		}
	}
	return refusals, ignored
}
