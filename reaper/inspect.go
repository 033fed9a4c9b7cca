package reaper

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Inspect is a dry run on files. Backends and Cluster read files, and Inspect contacts
// no API server and no store. It needs no ledger.Store. If Cluster is nil, every allocation
// is held.
//
// Files lack two of the four things that a release needs, and the report warns of that.
// They do not say that the pods were listed after the allocations. They have no ledger,
// so every grace period counts as over. If the plan is over a limit, the report shows it
// as refused, and warns.
//
// The error is an *InputError if the selection names something that does not exist, and
// a *PartialError if some pool could not be read.
func Inspect(ctx context.Context, o Options) (report.Report, error) {
	r := &run{Options: o, info: o.info(true)}
	if o.Cluster != nil { // the files are all there is
		r.HasNamespace = func(context.Context, string) (bool, error) { return false, nil }
	}
	now := o.Now().UTC()
	inv := r.begin(ctx)
	census, err := r.offlineCensus(ctx)
	if err != nil {
		return r.report, fmt.Errorf("census: %w", err)
	}
	waiting := judge.Judge(now, o.Policy, inv, census, ledger.Ledger{})
	decisions := judge.Judge(now, o.Policy, inv, census, elapsed(waiting, inv))
	for i := range decisions {
		if d := &decisions[i]; !d.FirstSeen.IsZero() || !d.Due.IsZero() {
			*d = d.Revised()
			d.FirstSeen, d.Due = time.Time{}, time.Time{}
		}
	}
	entries := r.decided(decisions)
	if err := r.seek(ctx, inv, census, decisions); err != nil {
		r.finish()
		return r.report, err
	}
	r.logDecisions(ctx, decisions)
	r.warnOfKept(inv, census, r.selectedOf(entries))
	r.warnOfMisspelt(ctx, inv, census)
	plan := judge.MakePlan(entries).In(inv).Beside(r.left).Within(r.selected)
	r.noteUnselected(plan)
	for _, i := range plan.Due {
		r.report.Entries[i].Outcome = report.Planned
	}
	if refusals := plan.Check(o.Policy.Limits, census); len(refusals) > 0 {
		r.report.Refuse(plan.Due, refusals)
		for _, refusal := range refusals {
			r.warn("a run would refuse this plan: " + refusal.Message)
		}
	}
	r.warnOfMissingNamespaces(plan, census)
	r.report.Run.FinishedAt = o.Now().UTC()
	r.finish()
	return r.report, r.failed()
}

// offlineCensus takes the census of a dump, and warns of lists that the dump lacks.
// Without a dump of pods, it returns the zero Census.
func (r *run) offlineCensus(ctx context.Context) (census.Census, error) {
	if r.Cluster == nil {
		r.warn("no pods were given, so every allocation is held")
		return census.Census{}, nil
	}
	r.caveat("offline, every grace period counts as elapsed, and the pods as listed after the allocations")
	scope := scopeOf(r.Policy)
	living, err := census.Take(ctx, r.Cluster, scope)
	if err != nil {
		return census.Census{}, err
	}
	r.warn(judge.ExcessWarnings(r.Policy, living)...)
	r.warn(judge.FenceWarnings(living)...)
	if scope.StatefulSets && !living.HasStatefulSets() {
		r.warn("the dump has no StatefulSets: if the cluster has some, a run may keep more than this plan")
	}
	if !living.HasNodes() {
		r.warn("the dump has no nodes: if some are not ready, a run may keep more than this plan")
	}
	return living, nil
}

// elapsed returns a ledger with which the grace period of every decision is over.
func elapsed(decisions []judge.Decision, inv ipam.Inventory) ledger.Ledger {
	return judge.NextLedger(ledger.Ledger{}, decisions, census.Census{}, inv, time.Time{}).LongAgo()
}

// warnOfMissingNamespaces names the namespaces of orphans in which the census has no pods
// at all. A dump of one namespace looks like that.
func (r *run) warnOfMissingNamespaces(plan judge.Plan, c census.Census) {
	populated := make(map[string]bool)
	for _, pod := range c.Pods() {
		populated[pod.Ref.Namespace] = true
	}
	var missing []string
	for _, o := range plan.Orphans() {
		namespace := o.Allocation().Owner.Pod.Namespace
		if namespace != "" && !populated[namespace] {
			missing = append(missing, namespace)
		}
	}
	if len(missing) == 0 || c.Size() == 0 {
		return
	}
	slices.Sort(missing)
	missing = slices.Compact(missing)
	r.caveat("the dump has no pods of the namespaces " + printable.Some(missing) + ": was it dumped with -A?")
}
