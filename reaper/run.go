package reaper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Run lists the allocations, takes the census, decides, and releases. In a dry run it
// does not release. The report is true with any error:
//
//   - a *LockedError: another run is in progress, and nothing was listed;
//   - a *LimitError: the plan was refused, and no part of it was released;
//   - an *InputError: the selection names what does not exist, and nothing was written. If it wraps
//     ErrAnotherStore, the store of a backend is not that of earlier runs, and no store was written
//     in that round;
//   - a *PartialError: some backend, pool or release failed, the rest is done;
//   - any other: the census failed, or ctx ended before the first write to a store.
//
// A run that remembers also writes into the ledger how it ended, unless it got a *LockedError or
// an *InputError for its selection.
//
// If ctx ends during the releases, an allocation whose release had not begun is kept.
func Run(ctx context.Context, o Options) (report.Report, error) {
	r := &run{Options: o, info: o.info(*o.Policy.DryRun), spent: make(map[string]int)}
	r.report = report.New(r.info, ipam.Inventory{})
	if *o.Policy.DryRun {
		r.Lock = nil // it writes at most the ledger, by compare-and-swap
	}
	unlock, err := acquire(ctx, r.Lock, r.ID, r.warn)
	if err == nil {
		err = r.rounds(ctx)
		r.note(ctx, err)
		unlock()
	}
	r.report.Run.FinishedAt = o.Now().UTC()
	r.recall()
	r.finish()
	return r.report, err
}

// round makes one round, from the listing to the last release.
func (r *run) round(ctx context.Context) error {
	r.decisions, r.left, r.due = nil, judge.Omitted{}, 0 // frees the memory of an earlier round

	// 1. Allocations are listed first and pods second: a pod that was there when its
	// allocation was listed is missing from the census only if it is gone.
	inv := r.begin(ctx)
	living, err := census.Take(ctx, r.Cluster, scopeOf(r.Policy))
	if err != nil {
		r.decided(judge.Judge(r.info.StartedAt, r.Policy, inv, census.Census{}, ledger.Ledger{}))
		return fmt.Errorf("census: %w", err)
	}
	r.progress("found %s", living.Found())
	r.warn(judge.ExcessWarnings(r.Policy, living)...)
	r.warn(judge.FenceWarnings(living)...)

	// 2. The ledger knows since when allocations have been ownerless.
	now := r.Now().UTC()
	memory, known := r.loadLedger(ctx)
	r.stored = memory
	r.remains = r.remains || !memory.Equal(ledger.Ledger{})
	if !r.remembers() {
		memory = memory.Merge(r.memory)
	}

	// 3. One decision for each allocation, and the plan to release the orphans.
	decide := func(l ledger.Ledger) []judge.Decision { return judge.Judge(now, r.Policy, inv, living, l) }
	decisions := decide(memory)
	entries := r.decided(decisions)
	if err := r.seek(ctx, inv, living, decisions); err != nil {
		return err
	}
	plan := judge.MakePlan(entries).In(inv).After(r.spent).Beside(r.left).Within(r.selected)
	r.due = len(plan.Due)
	r.noteUnselected(plan)
	r.logDecisions(ctx, decisions)
	r.warnOfKept(inv, living, r.selectedOf(entries))
	r.warnOfMisspelt(ctx, inv, living)
	r.progress("judged %d allocations: %d to release", len(decisions), len(plan.Due))

	// 4. A run on the store of another cluster ends. A plan that is over a limit is refused as a
	// whole.
	if err := r.refuseStores(plan, inv, memory); err != nil {
		return err
	}
	if err := r.refuse(plan, living, memory, now); err != nil {
		r.doubt(ctx, err, memory, known, living, now, decisions)
		return err
	}
	saved := memory
	next := func(have ledger.Ledger) ledger.Ledger {
		saved = have
		if !r.AcceptNewStore && len(otherStores(inv, have)) > 0 { // of a run beside this one
			return have
		}
		all := decisions
		if !have.Equal(memory) { // another run wrote in between
			all = decide(have)
		}
		saved = judge.NextLedger(have, all, living, inv, now.Add(-r.Policy.Journal.RestoreHold.Duration))
		return saved
	}

	// 5. A dry run ends here. It has no value that could release an allocation.
	if *r.Policy.DryRun {
		r.rememberPlan(ctx, memory, known, next)
		return r.planned(plan)
	}
	if err := r.mayRelease(known); err != nil {
		return r.keepDue(plan, err)
	}

	// 6. The ledger and the journal are written before the first release. Each release
	// needs a second look. The ledger then forgets what was released.
	plan = r.permitted(ctx, plan)
	confirmer := NewConfirmer(r.Cluster, living)
	own := r.endedBy(r.partial())
	own.Ended = own.Ended && len(plan.Due) == 0
	r.remains = r.saveLedger(ctx, memory, own, next) || r.remains
	if err := r.refuseStores(plan, inv, saved); err != nil {
		return err
	}
	plan = r.journal(ctx, plan)
	r.release(ctx, plan, confirmer)
	if r.lacking = confirmer.Lacking(); r.lacking != nil {
		r.failAndWarn(r.lacking)
	}
	r.forget(ctx, saved, plan)
	if err := r.Journals.Prune(ctx); err != nil {
		r.warn("old journals were not removed: " + err.Error())
	}
	r.progress("done")
	return r.failed()
}

// list takes the inventory of the backends that the policy does not disable.
func (r *run) list(ctx context.Context) ipam.Inventory {
	var enabled []ipam.Backend
	var disabled []ipam.Listing
	for _, b := range r.Backends {
		if r.Policy.Backends[b.Name()].Enabled != policy.Off {
			enabled = append(enabled, b)
			continue
		}
		disabled = append(disabled, ipam.Listing{
			Backend: b.Name(), Status: ipam.StatusSkipped, Message: "disabled by the policy",
			Protects: slices.Contains(r.Protectors, b.Name()),
		})
	}
	inv := ipam.TakeInventory(ctx, enabled, func(name string) bool {
		return r.Policy.Backends[name].Enabled == policy.On
	}, r.Protectors...)
	for _, l := range inv.Listings {
		for _, err := range l.Errors {
			r.fail(fmt.Errorf("%s: %w", l.Backend, err))
		}
		r.warnOfUndecoded(l)
	}
	inv.Listings = append(inv.Listings, disabled...)
	for _, name := range slices.Sorted(maps.Keys(r.Elsewhere)) {
		inv.Listings = append(inv.Listings, ipam.Listing{Backend: name, Status: ipam.StatusSkipped, Message: r.Elsewhere[name]})
	}
	r.progress("listed %s", inv.Stores())
	return inv
}

// begin lists the stores and starts the report of a round. It keeps the releases of earlier
// rounds and the warnings of the run.
func (r *run) begin(ctx context.Context) ipam.Inventory {
	for _, e := range r.report.Entries {
		if e.Outcome == report.Released {
			r.earlier = append(r.earlier, e)
		}
	}
	inv := r.list(ctx)
	warnings := r.report.Warnings
	r.report = report.New(r.info, inv)
	r.report.Warnings = warnings
	r.warn(survey(ctx, r.Backends, inv, &r.report)...)
	r.Selection.Found = poolsOf(r.Selection.Pools, inv, r.report)
	return inv
}

// planned ends a dry run: every orphan is reported as planned.
func (r *run) planned(plan judge.Plan) error {
	for _, i := range plan.Due {
		r.report.Entries[i].Outcome = report.Planned
	}
	if err := r.checkClock(); err != nil {
		r.warn(err.Error())
	}
	return r.failed()
}

// mayRelease returns an error if nothing may be released: the clock is wrong, the ledger could
// not be read, or an earlier round found that lists lack pods. The ledger may know that the node
// of a pod is cut off, or that half of the pods vanished.
func (r *run) mayRelease(ledgerKnown bool) error {
	if r.lacking != nil {
		return r.lacking
	}
	if !ledgerKnown {
		return errNoLedger
	}
	err := r.checkClock()
	if err != nil {
		r.failAndWarn(err)
	}
	return err
}

var errNoLedger = errors.New("nothing is released while the ledger cannot be read")

// keepDue ends a run that must not release: every orphan is reported as failed.
func (r *run) keepDue(plan judge.Plan, why error) error {
	for _, i := range plan.Due {
		r.settle(i, report.Failed, why)
	}
	return r.failed()
}
