package reaper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Inspect is a dry run over what files have: it contacts nothing, and reports
// what a run would see. Of the options it takes no Ledgers, and no Cluster where
// nobody knows who was alive; then every entry is held.
//
// The Cluster, too, is what a file has. Two of the four things that a release
// needs cannot be had from files, so the report warns of them: nothing says
// which came first, the allocations or the pods; and there is no ledger, so
// grace periods count as over. A limit is only warned of.
//
// The error is a *PartialError where some pool could not be read.
func Inspect(ctx context.Context, o Options) (Report, error) {
	r := &run{Options: o}
	now := o.Now().UTC()
	inv := r.list(ctx)
	r.report = newReport(RunInfo{ID: o.ID, StartedAt: now, DryRun: true, Version: o.Version, Cluster: o.Address}, inv)
	census, err := r.offlineCensus(ctx, inv)
	if err != nil {
		return r.report, fmt.Errorf("census: %w", err)
	}
	waiting := Judge(now, o.Policy, inv, census, Ledger{})
	decisions := Judge(now, o.Policy, inv, census, elapsed(waiting))
	for i := range decisions {
		decisions[i].FirstSeen, decisions[i].Due = time.Time{}, time.Time{}
	}
	r.logDecisions(decisions)
	r.report.tell(decisions)
	plan := MakePlan(decisions)
	for _, i := range plan.due {
		r.report.Entries[i].Outcome = Planned
	}
	var limit *LimitError
	if errors.As(plan.Check(o.Policy.Limits, census), &limit) {
		r.warn("a run would refuse this plan: " + limit.excess())
	}
	r.warnOfStrangers(plan, census)
	r.report.Run.FinishedAt = o.Now().UTC()
	r.report.tally()
	return r.report, r.failed()
}

// offlineCensus asks the dump, and warns of what it cannot tell. There is no
// census without one.
func (r *run) offlineCensus(ctx context.Context, inv Inventory) (Census, error) {
	if r.Cluster == nil {
		r.warn("no pods were given: nobody was asked who is alive, and every entry is held")
		return Census{}, nil
	}
	r.warn("offline, grace periods count as over, and the pods as dumped after the stores")
	scope := scopeOf(r.Policy)
	census, err := TakeCensus(ctx, r.Cluster, scope)
	if err != nil {
		return Census{}, err
	}
	if scope.StatefulSets && len(census.sets) == 0 {
		r.warn("the dump has no StatefulSets: if the cluster has, what they keep is not known")
	}
	if scope.Nodes && inv.namesNodes() && len(census.nodes) == 0 {
		r.warn("the dump has no nodes: which of them are not ready, and keep their addresses, is not known")
	}
	return census, nil
}

// elapsed returns the ledger by which the grace periods of all that waits are
// over.
func elapsed(decisions []Decision) Ledger {
	l := Ledger{}.next(decisions, Census{}, true)
	for id := range l.seen {
		l.seen[id] = time.Time{}
	}
	return l
}

// warnOfStrangers names the namespaces of which the plan knows no pod at all: a
// dump of one namespace looks like that.
func (r *run) warnOfStrangers(plan Plan, c Census) {
	populated := make(map[string]bool)
	for ref := range c.pods {
		populated[ref.Namespace] = true
	}
	var strange []string
	for _, o := range plan.Orphans() {
		namespace := o.Allocation().Owner.Pod.Namespace
		if namespace != "" && !populated[namespace] {
			strange = append(strange, namespace)
		}
	}
	if len(strange) == 0 || c.Size() == 0 {
		return
	}
	slices.Sort(strange)
	strange = slices.Compact(strange)
	more := ""
	if n := len(strange) - 5; n > 0 {
		strange, more = strange[:5], fmt.Sprintf(" and %d more", n)
	}
	r.warn("the dump has no pod of " + strings.Join(strange, ", ") + more + ": was it taken of all namespaces?")
}
