package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/ip-reaper/ip-reaper/policy"
)

// Options are what a run needs. All are required but Progress and those whose zero
// value is said to mean something.
type Options struct {
	ID      string
	Version string
	Address string // of the API server, for the report

	Policy   policy.Policy
	Backends []Backend // in the order in which they release
	Cluster  Cluster
	Ledgers  Ledgers
	Journals Journals
	Lock     Lock          // may be nil: then nothing keeps another run away
	Events   EventRecorder // may be nil: then no events are written

	// ClockSkew tells how far the clock is ahead of the API server's, and false where
	// that is not known. May be nil: then the clock is believed.
	ClockSkew func() (time.Duration, bool)

	Now          func() time.Time
	Logger       *slog.Logger
	Progress     func(line string) // called at each phase; may be nil
	Concurrency  int               // pools that are released at the same time
	Timeout      time.Duration     // of one look and what follows from it; 0 is none
	IgnoreLimits bool

	// Sleep waits for the end of the grace periods that the first look began to
	// count. It returns an error if ctx ends first. Nil means not to wait.
	Sleep func(ctx context.Context, d time.Duration) error
}

// A run is what Run does, from the lock to the report.
type run struct {
	Options
	info     RunInfo
	report   Report    // of the current look
	earlier  []Entry   // that earlier looks released
	released []Release // by all looks
	spent    int       // addresses that were released by all looks
	memory   Ledger    // of the last look of a dry run, which stores nothing

	mu       sync.Mutex
	failures *multierror.Error
}

// Run lists the allocations, asks who is alive, judges and, unless the policy says dry
// run, releases. The report is true whatever the error:
//
//   - a *LockedError: another run is going on, nothing was looked at;
//   - a *LimitError: the plan was refused, nothing of it was released;
//   - a *PartialError: something failed, the rest is done;
//   - any other: the census failed or ctx ended before anything was written.
//
// When ctx ends during the release, the allocations whose release had not begun are
// kept.
func Run(ctx context.Context, o Options) (Report, error) {
	r := &run{Options: o, info: RunInfo{
		ID: o.ID, StartedAt: o.Now().UTC(), DryRun: *o.Policy.DryRun, Version: o.Version, Cluster: o.Address,
	}}
	r.report = newReport(r.info, Inventory{})
	unlock, err := r.lock(ctx)
	if err == nil {
		err = r.looks(ctx)
		unlock()
	}
	r.report.Run.FinishedAt = o.Now().UTC()
	r.report.resume(r.earlier)
	r.report.tally()
	r.announce(ctx, err)
	return r.report, err
}

// looks looks once. With Sleep, it looks again whenever a grace period ends that the
// first look began to count, and each look starts from the listing.
func (r *run) looks(ctx context.Context) error {
	var end time.Time // of the last grace period that is waited for
	for {
		err := r.timedLook(ctx)
		var partial *PartialError
		if r.Sleep == nil || err != nil && !errors.As(err, &partial) {
			return err
		}
		if end.IsZero() {
			end = r.report.lastDue()
		}
		due := r.report.nextDue(end)
		if due.IsZero() {
			return err
		}
		if ctx.Err() != nil { // another look could not list anything, and would report that
			return cmp.Or(err, ctx.Err())
		}
		r.progress("waiting until %s for grace periods to end", stamp(due))
		if err := r.Sleep(ctx, due.Sub(r.Now())); err != nil {
			return err
		}
		r.failures = nil // the next look tries again what failed in this one
	}
}

// timedLook is look under the timeout.
func (r *run) timedLook(ctx context.Context) error {
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	return r.look(ctx)
}

// look is the whole way, from the listing to the last release.
func (r *run) look(ctx context.Context) error {
	// 1. Allocations are listed first, owners second: a pod that had its address when
	// the allocation was listed is in the census.
	inv := r.list(ctx)
	r.begin(inv)
	census, err := TakeCensus(ctx, r.Cluster, scopeOf(r.Policy))
	if err != nil {
		r.report.tell(Judge(r.info.StartedAt, r.Policy, inv, Census{}, Ledger{}))
		return fmt.Errorf("census: %w", err)
	}
	r.progress("found %d pods", census.Size())

	// 2. The ledger says since when allocations have been ownerless.
	now := r.Now().UTC()
	ledger, known := r.loadLedger(ctx)
	if *r.Policy.DryRun {
		ledger = ledger.Merge(r.memory)
	}

	// 3. One decision for each allocation, and the plan to release the orphans.
	judge := func(l Ledger) []Decision { return Judge(now, r.Policy, inv, census, l) }
	decisions := judge(ledger)
	plan := MakePlan(decisions).after(r.spent)
	r.report.tell(decisions)
	r.logDecisions(decisions)
	r.progress("judged %d allocations: %d to release", len(decisions), len(plan.due))

	// 4. A plan that cannot be right is refused as a whole.
	if err := r.refuse(plan, census, ledger); err != nil {
		return err
	}
	next := func(have Ledger, decisions []Decision) Ledger { return have.next(decisions, census, inv.complete()) }

	// 5. A dry run ends here. It holds no value that could release anything.
	if *r.Policy.DryRun {
		r.memory = next(ledger, decisions)
		return r.planned(plan)
	}
	if err := r.mayRelease(known); err != nil {
		return r.keepDue(plan, err)
	}

	// 6. Grace periods are remembered, and the plan is written down, before the first
	// release. Each release is confirmed by a second look.
	r.saveLedger(ctx, ledger, decisions, next, judge)
	plan = r.journal(ctx, plan)
	r.release(ctx, plan, census)
	if err := r.Journals.Prune(ctx); err != nil {
		r.warn("old journals stay: " + err.Error())
	}
	r.progress("done")
	return r.failed()
}

// list takes the inventory of the backends that the policy does not disable.
func (r *run) list(ctx context.Context) Inventory {
	var enabled []Backend
	var disabled []Listing
	for _, b := range r.Backends {
		if r.Policy.Backends[b.Name()].Enabled != policy.Off {
			enabled = append(enabled, b)
			continue
		}
		disabled = append(disabled, listingOf(b, StatusSkipped, "disabled by the policy"))
	}
	inv := TakeInventory(ctx, enabled, func(name string) bool {
		return r.Policy.Backends[name].Enabled == policy.On
	})
	for _, l := range inv.Listings {
		for _, err := range l.errs {
			r.fail(fmt.Errorf("%s: %w", l.Backend, err))
		}
	}
	inv.Listings = append(inv.Listings, disabled...)
	r.progress("listed %d stores", len(inv.Listings))
	return inv
}

// scopeOf returns what verdicts need to know beside the pods.
func scopeOf(p policy.Policy) Scope {
	return Scope{
		StatefulSets: p.Protection.StatefulSets != policy.Ignore,
		Nodes:        p.Nodes.Unreachable != policy.Release,
	}
}

// begin starts the report of a look. The releases of earlier looks, and the warnings of
// the run, stay.
func (r *run) begin(inv Inventory) {
	for _, e := range r.report.Entries {
		if e.Outcome == Released {
			r.earlier = append(r.earlier, e)
		}
	}
	warnings := r.report.Warnings
	r.report = newReport(r.info, inv)
	r.report.Warnings = warnings
}

// planned ends a dry run.
func (r *run) planned(plan Plan) error {
	for _, i := range plan.due {
		r.report.Entries[i].Outcome = Planned
	}
	if err := r.checkClock(); err != nil {
		r.warn(err.Error())
	}
	return r.failed()
}

// mayRelease returns an error where nothing may be released: the ledger could not be
// read, which may say that the node of a pod is cut off or that half of the pods
// vanished; or the clock is wrong.
func (r *run) mayRelease(ledgerKnown bool) error {
	if !ledgerKnown {
		return errNoLedger
	}
	err := r.checkClock()
	if err != nil {
		r.failAndTell(err)
	}
	return err
}

var errNoLedger = errors.New("nothing is released while the ledger cannot be read")

// keepDue releases nothing of the plan.
func (r *run) keepDue(plan Plan, why error) error {
	for _, i := range plan.due {
		r.settle(i, Failed, why)
	}
	return r.failed()
}
