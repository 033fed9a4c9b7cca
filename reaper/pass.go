package reaper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/ip-reaper/ip-reaper/policy"
)

// pass is the way through the house.
func (r *run) pass(ctx context.Context, info RunInfo) error {
	p := r.Policy
	inv := r.list(ctx)
	r.begin(info, inv)
	r.progress("listed %d stores", len(inv.Listings))
	scope := r.scope()
	census, err := TakeCensus(ctx, r.Cluster, scope)
	if err != nil {
		r.report.tell(Judge(info.StartedAt, p, inv, Census{}, Ledger{}))
		return fmt.Errorf("census: %w", err)
	}
	r.progress("found %d pods", census.Size())

	now := r.Now().UTC()
	ledger, known := r.loadLedger(ctx)
	if *p.DryRun {
		ledger = ledger.Merge(r.memory) // nobody writes it
	}
	decisions := Judge(now, p, inv, census, ledger)
	plan := MakePlan(decisions).after(r.spent)
	r.report.tell(decisions)
	r.logDecisions(decisions)
	r.progress("judged %d allocations: %d to release", len(decisions), len(plan.due))

	if err := r.refuse(plan, census, ledger); err != nil {
		return err
	}
	next := func(have Ledger, decisions []Decision) Ledger { return have.next(decisions, census, inv.complete()) }
	if *p.DryRun {
		for _, i := range plan.due {
			r.report.Entries[i].Outcome = Planned
		}
		r.memory = next(ledger, decisions)
		if err := r.checkClock(); err != nil {
			r.warn(err.Error())
		}
		return r.failed()
	}
	if !known {
		// It may say that the node of a pod is cut off, or that half of the pods are gone.
		return r.keepDue(plan, errNoLedger)
	}
	if err := r.checkClock(); err != nil {
		r.failAndTell(err)
		return r.keepDue(plan, err)
	}
	r.saveLedger(ctx, ledger, decisions, next, func(l Ledger) []Decision { return Judge(now, p, inv, census, l) })
	plan = r.journal(ctx, info, plan)
	r.release(ctx, plan, census)
	if err := r.Journals.Prune(ctx); err != nil {
		r.warn("old journals stay: " + err.Error())
	}
	r.progress("done")
	return r.failed()
}

// errNoLedger keeps what is due.
var errNoLedger = errors.New("nothing is released while the ledger cannot be read")

// keepDue releases nothing of the plan.
func (r *run) keepDue(plan Plan, why error) error {
	for _, i := range plan.due {
		r.settle(i, Failed, why)
	}
	return r.failed()
}

// maxAhead is by how much a clock may be wrong: it is a part of the shortest time
// that anything waits for, and more than an API server takes to answer.
const maxClockSkew = time.Minute

// checkClock returns an error where the clock is wrong. No grace period could be
// believed that it says is over, nor any age.
func (r *run) checkClock() error {
	if r.ClockSkew == nil {
		return nil
	}
	clockSkew, known := r.ClockSkew()
	switch {
	case known && clockSkew > maxClockSkew:
		return fmt.Errorf("the clock here is %v ahead of the API server's: nothing is released until it is right", clockSkew)
	case known && -clockSkew > maxClockSkew:
		return fmt.Errorf("the clock here is %v behind the API server's: nothing is released until it is right", -clockSkew)
	}
	return nil
}

// begin starts the report of a look. What an earlier one released, and what was to
// be said of the run, stays.
func (r *run) begin(info RunInfo, inv Inventory) {
	for _, e := range r.report.Entries {
		if e.Outcome == Released {
			r.earlier = append(r.earlier, e)
		}
	}
	warnings := r.report.Warnings
	r.report = newReport(info, inv)
	r.report.Warnings = warnings
}

// refuse returns a *LimitError where the census is not to be believed, or the plan
// too large, unless limits are ignored.
func (r *run) refuse(plan Plan, census Census, last Ledger) error {
	for _, err := range []error{plan.Believe(r.Policy.Limits, census, last), plan.Check(r.Policy.Limits, census)} {
		var limit *LimitError
		switch {
		case !errors.As(err, &limit):
		case !r.IgnoreLimits:
			limit.Released = len(r.earlier)
			return err
		default:
			r.warn("limits are ignored: " + limit.excess())
		}
	}
	return nil
}

// scope returns what verdicts need to know beside the pods.
func (r *run) scope() Scope {
	return Scope{
		StatefulSets: r.Policy.Protection.StatefulSets != policy.Ignore,
		Nodes:        r.Policy.Nodes.Unreachable != policy.Release,
	}
}

// list takes the inventory of the backends that the policy does not disable.
func (r *run) list(ctx context.Context) Inventory {
	var enabled []Backend
	for _, b := range r.Backends {
		if r.Policy.Backends[b.Name()].Enabled != policy.Off {
			enabled = append(enabled, b)
		}
	}
	inv := TakeInventory(ctx, enabled, func(name string) bool {
		return r.Policy.Backends[name].Enabled == policy.On
	})
	for _, l := range inv.Listings {
		for _, err := range l.errs {
			r.fail(fmt.Errorf("%s: %w", l.Backend, err))
		}
	}
	for _, b := range r.Backends {
		if r.Policy.Backends[b.Name()].Enabled == policy.Off {
			_, protects := b.(Protector)
			inv.Listings = append(inv.Listings, Listing{
				Backend: b.Name(), Status: StatusSkipped, Message: "disabled by the policy", Protects: protects,
			})
		}
	}
	return inv
}

// loadLedger reads what earlier runs remember. It reports false where the
// ledger may be whole but could not be read, so that it must not be replaced.
func (r *run) loadLedger(ctx context.Context) (Ledger, bool) {
	ledger, err := r.Ledgers.Load(ctx)
	switch {
	case errors.Is(err, ErrLedgerDamaged):
		r.warn(err.Error() + "; what it remembered counts as first seen now")
	case err != nil:
		r.failAndTell(fmt.Errorf("load the ledger: %w", err))
		return Ledger{}, false
	}
	return ledger, true
}

// saveLedger remembers what has to wait. Where another run wrote in between,
// its ledger is read and judged by again.
func (r *run) saveLedger(ctx context.Context, have Ledger, decisions []Decision,
	next func(Ledger, []Decision) Ledger, judge func(Ledger) []Decision,
) {
	b := retry.WithMaxRetries(3, retry.NewConstant(100*time.Millisecond))
	err := retry.Do(ctx, b, func(ctx context.Context) error {
		want := next(have, decisions)
		if want.Equal(have) {
			return nil
		}
		err := r.Ledgers.Save(ctx, want)
		if !errors.Is(err, ErrAgain) {
			return err
		}
		theirs, loadErr := r.Ledgers.Load(ctx)
		if loadErr != nil && !errors.Is(loadErr, ErrLedgerDamaged) {
			return loadErr
		}
		if have = theirs; have.Len() > 0 {
			decisions = judge(have)
		}
		return retry.RetryableError(err)
	})
	if err != nil {
		r.failAndTell(fmt.Errorf("save the ledger: %w", err))
	}
}

// logVerdicts says why, one line a allocation.
func (r *run) logDecisions(decisions []Decision) {
	for _, v := range decisions {
		r.Logger.Debug("judged", "backend", v.Allocation.Backend, "pool", v.Allocation.Pool,
			"key", v.Allocation.Key, "ip", v.Allocation.IP, "pod", v.Allocation.Owner.Pod,
			"verdict", v.Verdict.String(), "reason", v.Reason, "note", v.Note)
	}
}
