package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"

	"github.com/ip-reaper/ip-reaper/policy"
)

// Options are the parts and the settings of a run. A field is required unless its
// comment says what its zero value means.
type Options struct {
	ID      string
	Version string
	Address string // of the API server, for the report; on a node, empty if none is asked

	// Program, Kubeconfig, Context, StateNamespace and PolicyFile are for the report. They
	// may be empty.
	Program        string
	Kubeconfig     string
	By             string // for the journal: see JournalRun.By
	Context        string
	StateNamespace string
	PolicyFile     string

	// Node is the name of the node whose stores the run is about; empty for those of a
	// cluster. StateDir is the folder of ledger, lock and journals there.
	Node     string
	StateDir string

	// Selection narrows what the run reports and releases. The zero Selection does not.
	Selection Selection

	Policy   policy.Policy
	Backends []Backend // in the order in which they release
	Cluster  Cluster

	// Protectors has the names of the backends whose allocations protect those of others
	// (Allocation.Protects). While one of them cannot be listed, or a pool of it cannot be
	// read, no allocation is released, because any may be protected.
	Protectors []string

	// Elsewhere says of backends that another run opens, by their names, which one does. The
	// report has them as skipped.
	Elsewhere map[string]string

	Ledgers  Ledgers
	Journals Journals
	Lock     Lock          // nil: another run may go on at the same time
	Events   EventRecorder // nil: no events are written

	// Access returns which of these backends the account may not release for lack of a
	// right. It is called before the first write of a round that has something due. Nil:
	// every right is believed to be there.
	Access func(ctx context.Context, backends []string) Denied

	// ClockSkew returns how far the clock is ahead of the API server's, and false if
	// that is not known. Nil: the clock is believed.
	ClockSkew func() (time.Duration, bool)

	Now          func() time.Time
	Logger       *slog.Logger
	Progress     func(line string) // called at each step; may be nil
	Timeout      time.Duration     // of one round, with its releases; 0 is none
	IgnoreLimits bool

	// Brief leaves the allocations in use of which there is nothing to say out of the
	// report's entries. It counts them.
	Brief bool

	// Remember makes a dry run save the ledger, and nothing else.
	Remember bool

	// Sleep waits for the next grace period to end. It returns an error if ctx ends
	// first. Nil: the run does not wait.
	Sleep func(ctx context.Context, d time.Duration) error

	// MaxWait is how long the run sleeps at most, all of its sleeps together. An
	// allocation whose grace period would take it longer stays suspected. 0: until the
	// last grace period that the first round found.
	MaxWait time.Duration
}

// A run is the state of one call of Run.
type run struct {
	Options
	info     RunInfo
	report   Report    // of the current round
	earlier  []Entry   // the releases of earlier rounds
	released []Release // of all rounds
	spent    int       // addresses that all rounds released
	memory   Ledger    // of the last round of a dry run, which stores no ledger
	selected []bool    // by the entries of the current round; nil if all are
	sought   bool      // the names of the selection have been looked up
	remains  bool      // the times of the report outlast the run

	decisions []Decision // of the current round, one for each entry
	left      Omitted    // of the current round, without an entry
	stored    Ledger     // the ledger as far as it is known to be stored

	mu       sync.Mutex
	begun    map[int]error // by the entries of the current round: why a release that may have begun is not decided
	failures *multierror.Error
	logged   map[string]bool // the likeness of each failure that the log has as an error
}

// Run lists the allocations, takes the census, decides, and releases. In a dry run it
// does not release. The report is true with any error:
//
//   - a *LockedError: another run is going on, and nothing was listed;
//   - a *LimitError: the plan was refused, and nothing of it was released;
//   - an *InputError: the selection names what does not exist, and nothing was written;
//   - a *PartialError: some backend, pool or release failed, the rest is done;
//   - any other: the census failed, or ctx ended before the first write.
//
// If ctx ends during the releases, an allocation whose release had not begun is kept.
func Run(ctx context.Context, o Options) (Report, error) {
	r := &run{Options: o, info: o.info(*o.Policy.DryRun)}
	r.report = New(r.info, Inventory{})
	unlock, err := r.lock(ctx)
	if err == nil {
		err = r.rounds(ctx)
		unlock()
	}
	r.report.Run.FinishedAt = o.Now().UTC()
	r.recall()
	r.finish()
	r.announce(ctx, err)
	return r.report, err
}

// info returns what identifies the run.
func (o Options) info(dryRun bool) RunInfo {
	return RunInfo{
		ID: o.ID, StartedAt: o.Now().UTC(), DryRun: dryRun, Remember: dryRun && o.Remember,
		Version: o.Version, Cluster: o.Address,
		Program: o.Program, Kubeconfig: o.Kubeconfig, Context: o.Context, StateNamespace: o.StateNamespace,
		Node: o.Node, StateDir: o.StateDir,
		Selection: o.Selection,
		Policy:    PolicyInfo{File: o.PolicyFile, GracePeriod: *o.Policy.GracePeriod, MinAge: *o.Policy.MinAge},
	}
}

// rounds makes one round. With Sleep, it then sleeps until the next grace period ends, and
// makes another one. It ends with the last grace period that the first round
// found, or before a sleep that would exceed MaxWait.
func (r *run) rounds(ctx context.Context) error {
	var end time.Time       // of the last grace period that the first round found
	var slept time.Duration // in all
	for {
		err := r.timedRound(ctx)
		var partial *PartialError
		if r.Sleep == nil || err != nil && !errors.As(err, &partial) {
			return err
		}
		if end.IsZero() {
			end = r.lastDue()
		}
		due := r.nextDue(end)
		if due.IsZero() {
			return err
		}
		if ctx.Err() != nil { // another round would replace the report by a failed listing
			return cmp.Or(err, ctx.Err())
		}
		d := max(due.Sub(r.Now()), 0)
		if slept += d; r.MaxWait > 0 && slept > r.MaxWait {
			r.progress("the next grace period ends at %s: not waiting for it", Stamp(due))
			return err
		}
		r.progress("waiting until %s for grace periods to end", Stamp(due))
		if err := r.Sleep(ctx, d); err != nil {
			return err
		}
		r.failures = nil // the next round tries again
	}
}

// timedRound is round, with the timeout.
func (r *run) timedRound(ctx context.Context) error {
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	return r.round(ctx)
}

// round is the whole way, from the listing to the last release.
func (r *run) round(ctx context.Context) error {
	r.decisions, r.left = nil, Omitted{} // an earlier round needs no memory any more

	// 1. Allocations are listed first and pods second: a pod that was there when its
	// allocation was listed is missing from the census only if it is gone.
	inv := r.list(ctx)
	r.begin(inv)
	r.survey(ctx, inv)
	census, err := TakeCensus(ctx, r.Cluster, scopeOf(r.Policy))
	if err != nil {
		r.decided(Judge(r.info.StartedAt, r.Policy, inv, Census{}, Ledger{}))
		return fmt.Errorf("census: %w", err)
	}
	r.progress("found %s", census.Found())
	r.warnAll(ExcessWarnings(r.Policy, census))

	// 2. The ledger knows since when allocations have been ownerless.
	now := r.Now().UTC()
	ledger, known := r.loadLedger(ctx)
	r.stored = ledger
	r.remains = r.remains || !ledger.Equal(Ledger{})
	if !r.remembers() {
		ledger = ledger.Merge(r.memory)
	}

	// 3. One decision for each allocation, and the plan to release the orphans.
	judge := func(l Ledger) []Decision { return Judge(now, r.Policy, inv, census, l) }
	decisions := judge(ledger)
	entries := r.decided(decisions)
	if err := r.seekOnce(inv, census, decisions); err != nil {
		return err
	}
	plan := MakePlan(entries).after(r.spent).beside(r.left).within(r.selected)
	r.noteUnselected(plan)
	r.logDecisions(ctx, decisions)
	r.warnOfKept(inv, census, r.selectedOf(entries))
	r.progress("judged %d allocations: %d to release", len(decisions), len(plan.due))

	// 4. A plan that is over a limit is refused as a whole.
	if err := r.refuse(plan, census, ledger, now); err != nil {
		r.doubt(ctx, err, ledger, known, census, now, decisions)
		return err
	}
	saved := ledger
	next := func(have Ledger) Ledger {
		all := decisions
		if !have.Equal(ledger) { // another run wrote in between
			all = judge(have)
		}
		saved = StillHolding(NextLedger(have, all, census, inv), have, all, now.Add(-r.Policy.Journal.RestoreHold.Duration))
		return saved
	}

	// 5. A dry run ends here. It has no value that could release an allocation.
	if *r.Policy.DryRun {
		r.rememberPlan(ctx, ledger, known, next)
		return r.planned(plan)
	}
	if err := r.mayRelease(known); err != nil {
		return r.keepDue(plan, err)
	}

	// 6. The ledger and the journal are written before the first release. Each release
	// needs a second look. The ledger then forgets what was released.
	plan = r.permitted(ctx, plan)
	confirmer := NewConfirmer(r.Cluster, census, len(plan.due))
	r.remains = r.saveLedger(ctx, ledger, next) || r.remains
	plan = r.journal(ctx, plan)
	r.release(ctx, plan, confirmer)
	r.forget(ctx, saved, plan)
	if err := r.Journals.Prune(ctx); err != nil {
		r.warn("old journals were not removed: " + err.Error())
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
		disabled = append(disabled, Listing{
			Backend: b.Name(), Status: StatusSkipped, Message: "disabled by the policy",
			Protects: slices.Contains(r.Protectors, b.Name()),
		})
	}
	inv := TakeInventory(ctx, enabled, func(name string) bool {
		return r.Policy.Backends[name].Enabled == policy.On
	}, r.Protectors...)
	for _, l := range inv.Listings {
		for _, err := range l.Errors {
			r.failListing(fmt.Errorf("%s: %w", l.Backend, err))
		}
	}
	inv.Listings = append(inv.Listings, disabled...)
	for _, name := range slices.Sorted(maps.Keys(r.Elsewhere)) {
		inv.Listings = append(inv.Listings, Listing{Backend: name, Status: StatusSkipped, Message: r.Elsewhere[name]})
	}
	r.progress("listed %s", inv.Stores())
	return inv
}

// scopeOf returns the lists that the policy needs beside those of the pods and the virtual
// machines. Nodes tell which pods moved, and which may hide an address.
func scopeOf(p policy.Policy) Scope {
	return Scope{StatefulSets: p.Protection.StatefulSets != policy.Ignore, Nodes: true}
}

// begin starts the report of a round. It keeps the releases of earlier rounds and the
// warnings of the run.
func (r *run) begin(inv Inventory) {
	for _, e := range r.report.Entries {
		if e.Outcome == Released {
			r.earlier = append(r.earlier, e)
		}
	}
	warnings := r.report.Warnings
	r.report = New(r.info, inv)
	r.report.Warnings = warnings
}

// planned ends a dry run: every orphan is reported as planned.
func (r *run) planned(plan Plan) error {
	for _, i := range plan.due {
		r.report.Entries[i].Outcome = Planned
	}
	if err := r.checkClock(); err != nil {
		r.warn(err.Error())
	}
	return r.failed()
}

// mayRelease returns an error if nothing may be released: the clock is wrong, or the
// ledger could not be read. The ledger may know that the node of a pod is cut off, or
// that half of the pods vanished.
func (r *run) mayRelease(ledgerKnown bool) error {
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
func (r *run) keepDue(plan Plan, why error) error {
	for _, i := range plan.due {
		r.settle(i, Failed, why)
	}
	return r.failed()
}
