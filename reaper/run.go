package reaper

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// Run lists the allocations, takes the census, decides, and releases. In a dry run it
// does not release, and it may read [Files]. The report is true with any error:
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
// If ctx ends during the releases, an allocation whose release had not begun stays: that is no failure
// of its own.
func Run(ctx context.Context, o Options) (report.Report, error) {
	r := newRun(o, *o.Policy.DryRun)
	if *o.Policy.DryRun {
		r.Lock = nil // it writes at most the ledger, by compare-and-swap
	}
	unlock, err := acquire(ctx, r.Lock, r.ID, r.warn)
	if err == nil {
		err = r.rounds(ctx)
		r.find(ctx)
		r.findEndpoints(ctx)
		r.saveEnd(ctx, err)
		unlock()
	}
	r.warnOfAges()
	made := r.report()
	if r.saved.Ended { // the totals count this run
		made.Totals = &r.stored.Totals
	}
	made.Uses = r.round.ledger.Uses
	return made, err
}

// A run is the state of one call of Run.
type run struct {
	Options
	*messages
	info     report.RunInfo
	earlier  earlierRounds
	round    round       // the latest one
	recorded journal.Run // this run, as its journal has it; zero before the first write

	stored ledger.Ledger // the ledger as far as it is known to be stored
	saved  ledger.Run    // this run, as the stored ledger has it
	lasts  bool          // a ledger is stored, so the times of the report outlast the run
	guard  *guard        // of the releases of the round
}

// earlierRounds are what the rounds of a run leave to the next one.
type earlierRounds struct {
	released []report.Entry
	spent    map[string]int // addresses that were released, by backend
	memory   ledger.Ledger  // of a dry run, which stores no ledger
	lacking  error          // why the lists of the API server are not believed any more
	resolved bool           // the names of the selection
}

// A round is what one round knows, decides and does. Each step fills in its part.
type round struct {
	stock
	now      time.Time // by which it judges
	verdicts judge.Verdicts
	selected []bool // by the decisions; nil if all are
	plan     judge.Plan
	refused  []judge.Refusal // the limits that refuse the plan

	comparison *report.Comparison // with the installed policy; nil if there is none

	attempts []*attempt // in the order of the decisions
	found    []report.Finding

	endpoints map[int]string // that have the addresses of gone pods, by the decisions

	protectedBy map[ipam.PoolRef]string // what protects each pool in which nothing can be released
}

// newRun returns a run that has done nothing.
func newRun(o Options, dryRun bool) *run {
	r := &run{Options: o, info: o.info(dryRun), messages: &messages{logger: o.Logger, show: o.Progress, shown: o.Shown, caveats: slices.Clone(o.Caveats)}}
	r.round.layout = report.NewLayout(ipam.Inventory{})
	r.earlier.spent = make(map[string]int)
	return r
}

// rounds makes one round. With Sleep, it then sleeps until the next grace period ends, and
// makes another one. It ends with the last grace period that the first round found, or
// before a sleep that would exceed MaxWait.
func (r *run) rounds(ctx context.Context) error {
	var end time.Time       // of the last grace period that the first round found
	var slept time.Duration // in all
	for {
		err := r.makeRound(ctx)
		var partial *report.PartialError
		if r.Sleep == nil || err != nil && !errors.As(err, &partial) {
			return err
		}
		dues := r.dues()
		if end.IsZero() && len(dues) > 0 {
			end = dues[len(dues)-1]
		}
		if len(dues) == 0 || dues[0].After(end.Add(rounding)) {
			return err
		}
		due := dues[0]
		if ctx.Err() != nil { // another round would replace the report with a failed listing
			return cmp.Or(err, ctx.Err())
		}
		d := max(due.Sub(r.Now()), 0)
		if slept += d; r.MaxWait > 0 && slept > r.MaxWait {
			r.progress("the next grace period ends at %s: not waiting for it", judge.Stamp(due))
			return err
		}
		r.progress("waiting until %s for grace periods to end", judge.Stamp(due))
		if err := r.Sleep(ctx, d); err != nil {
			return err
		}
		r.failures = nil // the next round tries again
	}
}

// makeRound makes one round, from the listing to the last release.
func (r *run) makeRound(ctx context.Context) error {
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	r.endRound()
	r.round = round{} // frees the memory of the earlier one
	n := &r.round

	// 1. Allocations are listed first and pods second: a pod that was there when its allocation was
	// listed is missing from the census only if it is gone. The ledger knows since when allocations
	// have been ownerless.
	taken, censusErr := r.takeStock(ctx)

	// 2. One decision for each allocation, and the plan to release the orphans. Without a census,
	// all are held.
	n.stock = taken
	n.now = r.Now().UTC()
	if r.Files != nil && censusErr == nil {
		n.ledger = r.withoutHistory(n)
	}
	n.verdicts = r.judge(n.now, r.Policy, n.stock, n.ledger)
	n.selected = n.selection.Of(n.verdicts.Decisions)
	if censusErr != nil {
		return censusErr
	}
	if r.Files != nil {
		r.warnOfDump(n.verdicts)
	}
	if err := r.resolveNames(ctx, *n); err != nil {
		return err
	}
	n.plan = judge.PlanOf(n.verdicts, n.inventory, r.earlier.spent).Select(n.selected)
	n.attempts = attemptsOf(n.plan)
	n.comparison = r.compare(n)
	r.warnOf(ctx, n)
	r.progress("judged %s: %d due", printable.Counted(n.inventory.Size(), "allocation"), len(n.plan.Due))

	// 3. Files are not compared with earlier ones.
	if r.Files != nil {
		r.warnOfRefusal(n)
		return r.endDryRun(ctx, *n)
	}

	// A run on the store of another cluster ends. A plan that is over a limit is refused as a
	// whole.
	if err := r.checkStores(n, n.ledger); err != nil {
		return err
	}
	if err := r.checkLimits(n); err != nil {
		r.saveDoubt(ctx, *n, err)
		return err
	}

	// 4. A dry run ends here. It has no value that could release an allocation.
	if *r.Policy.DryRun {
		return r.endDryRun(ctx, *n)
	}
	if err := r.mayRelease(n.stock); err != nil {
		failAll(ctx, r.logger, n.attempts, err)
		return r.failed()
	}

	// 5. The ledger and the journal are written before the first release. Each release
	// needs a second look. The ledger then forgets what was released.
	r.checkRights(ctx, n.attempts)
	r.guard = &guard{lock: r.Lock, ledgers: r.Ledgers, samePolicy: r.SamePolicy}
	remembered := r.saveVerdicts(ctx, *n)
	if err := r.checkStores(n, remembered); err != nil {
		return err
	}
	r.writeJournal(ctx, n.attempts)
	r.release(ctx, *n)
	r.forgetReleased(ctx, remembered, n.attempts)
	if err := r.Journals.Prune(ctx); err != nil {
		r.warn("old journals were not removed: " + err.Error())
	}
	if ctx.Err() == nil {
		r.progress("done")
	}
	return r.failed()
}

// judge returns the verdicts of a policy on what a round knows. A selection asks about what is in use,
// too.
func (r *run) judge(now time.Time, p policy.Policy, s stock, known ledger.Ledger) judge.Verdicts {
	return judge.Decide(now, p, s.inventory, s.census, known, !r.Brief || !s.selection.Everything())
}

// warnOf logs what a round decided, and warns of what is kept despite its leaks: pools in which
// every address is protected, what annotations alone keep, and what may be of another cluster. It
// also warns of names in the policy that match nothing.
func (r *run) warnOf(ctx context.Context, n *round) {
	if r.logger.Enabled(ctx, slog.LevelDebug) { // a line for each of many
		for _, d := range n.verdicts.Decisions {
			r.logger.DebugContext(ctx, "judged", "backend", d.Allocation.Backend, "pool", d.Allocation.Pool,
				"key", d.Allocation.Key, "ip", d.Allocation.IP, "pod", d.Allocation.Owner.Pod,
				"verdict", d.Verdict.String(), "reason", d.Reason, "note", d.Note)
		}
	}
	decisions := n.selectedDecisions()
	var warnings []string
	n.protectedBy, warnings = judge.ProtectedPools(n.inventory, decisions)
	r.warn(warnings...)
	r.warn(judge.ClaimWarnings(n.census, decisions)...)
	r.warn(judge.ForeignWarnings(decisions)...)
	r.warn(judge.NotReadyWarnings(decisions)...)
	r.warnOfMisspelt(ctx, n.stock)
}

// selectedDecisions returns the decisions that the run reports.
func (n *round) selectedDecisions() []judge.Decision {
	if n.selected == nil {
		return n.verdicts.Decisions
	}
	var some []judge.Decision
	for i, d := range n.verdicts.Decisions {
		if n.selected[i] {
			some = append(some, d)
		}
	}
	return some
}

// endDryRun ends a dry run: every orphan is planned.
func (r *run) endDryRun(ctx context.Context, n round) error {
	planAll(n.attempts, report.Planned)
	if r.Files != nil {
		r.warnOfMissingNamespaces(n)
		return r.failed()
	}
	clock := r.checkClock()
	switch {
	case !r.Remember:
		r.earlier.memory = r.nextLedger(n, n.ledger)
	case n.ledgerRead && clock == nil:
		r.saveVerdicts(ctx, n)
	}
	if clock != nil {
		r.warn(clock.Error())
	}
	return r.failed()
}

// failed returns the failures so far, and logs how many are equal.
func (r *run) failed() error {
	err := r.partial()
	r.countFailures(err)
	return err
}

// partial returns the failures so far as a *PartialError, or nil. A release that an earlier round
// did not finish is among them, because no later round tries it again.
func (r *run) partial() error {
	failures := slices.Clone(r.failures)
	for _, e := range r.earlier.released {
		if e.Error != "" {
			failures = append(failures, &report.PoolFailure{Backend: e.Backend, Pool: e.Pool, What: e.Key, Err: errors.New(e.Error)})
		}
	}
	return report.Partial(failures)
}

// endRound keeps what the latest round released, for the next one.
func (r *run) endRound() {
	for _, a := range r.round.attempts {
		if a.released() {
			r.earlier.released = append(r.earlier.released, report.EntryOf(a.decision, a.done()))
		}
	}
}

// report returns the report of the run.
func (r *run) report() report.Report {
	n := r.round
	info := r.info
	info.FinishedAt = r.Now().UTC()
	info.Memory, info.LedgerUnread = r.lasts, !n.ledgerRead
	info.Barred = info.Barred || r.checkClock() != nil
	if info.DryRun && slices.ContainsFunc(n.attempts, func(a *attempt) bool { return !a.decision.KnownTo(r.stored) }) {
		info.Forgets.Duration = r.MaxWait
	}
	info.Caveats = r.caveats
	outcomes := make(map[int]report.Done, len(n.attempts))
	for _, a := range n.attempts {
		outcomes[a.index] = a.done()
	}
	var living *census.Census                             // not a part of the round, which it would keep in memory
	if !n.census.Began().IsZero() && !n.census.OnNode() { // on a node, nobody may have asked for pods
		living = new(n.census)
	}
	var nodes []string
	if n.census.HasNodes() {
		nodes = slices.Sorted(n.census.Nodes())
	}
	return report.Make(report.Results{
		Run: info, Inventory: n.inventory, Layout: n.layout, Verdicts: n.verdicts,
		Selection: n.selection, Selected: n.selected, Outcomes: outcomes, Refused: n.refused,
		ProtectedBy: n.protectedBy, Earlier: r.earlier.released, Found: n.found, Comparison: n.comparison, Living: living, Endpoints: n.endpoints, Warnings: r.warnings, Brief: r.Brief, Nodes: nodes,
		HasTimes: func(d *judge.Decision) bool {
			released := d.Verdict == judge.Orphaned && !info.DryRun
			return r.lasts && (released || d.KnownTo(r.stored))
		},
	})
}

// mayRelease returns an error if nothing may be released: the clock is wrong, the ledger could
// not be read, or an earlier round found that lists lack pods. The ledger may know that the node
// of a pod is cut off, or that half of the pods vanished.
func (r *run) mayRelease(s stock) error {
	if r.earlier.lacking != nil {
		r.fail(r.earlier.lacking)
		return r.earlier.lacking
	}
	if !s.ledgerRead {
		return errNoLedger
	}
	err := r.checkClock()
	if err != nil {
		r.failAndWarn(err)
	}
	return err
}

var errNoLedger = errors.New("nothing is released while the ledger cannot be read")

// rounding is the most that the ledger may move a time.
const rounding = time.Second

// dues returns when the grace periods of selected allocations end, with the rounding of the
// ledger, in ascending order.
func (r *run) dues() []time.Time {
	var dues []time.Time
	for _, d := range r.round.selectedDecisions() {
		if d.Verdict == judge.Suspected {
			dues = append(dues, d.Due.Add(rounding))
		}
	}
	slices.SortFunc(dues, time.Time.Compare)
	return dues
}
