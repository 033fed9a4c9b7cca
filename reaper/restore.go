package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// RestoreOptions are the parts and the settings of a restore. A field is required unless
// its comment says what its zero value means.
type RestoreOptions struct {
	ID      string
	Version string
	Address string // of the API server, for the report

	Node     string // see Options
	StateDir string

	ClusterUID         string // of the namespace kube-system; empty if it cannot be read
	AcceptOtherCluster bool   // the journal may be from another cluster

	Journal journal.Journal
	Damage  error        // why parts of the journal could not be read; nil if it is whole
	Only    []netip.Addr // the addresses to put back; empty: all
	DryRun  bool

	// Selection narrows what is put back, by pools and nodes. The zero Selection does not.
	Selection judge.Selection

	Backends []ipam.Backend // in the order in which they release
	Cluster  census.Cluster
	Ledgers  ledger.Store // nil: no run learns of the restore
	Lock     Lock         // nil: a run may be in progress

	Now    func() time.Time
	Logger *slog.Logger
}

// A restoreCall is the state of one call of Restore.
type restoreCall struct {
	RestoreOptions
	report   report.RestoreReport
	failures []error

	records []ipam.Record // of the report's entries, by the same indices
	writes  []int         // the journal's writes that had the records

	// ask returns the method that answers for records: Restore or, in a dry run, Compare. A
	// dry run has no way to Restore. free is the outcome of a record without an error.
	ask  func(b ipam.Backend) func(ctx context.Context, pool string, rs []ipam.Record) []error
	free report.RestoreOutcome

	planned map[[3]string]bool // the places of the records that a dry run would put back
	lost    map[int]bool       // the records, by index, whose restore may have been carried out
}

// Restore puts back the records of a journal whose places are still free. It does not
// touch an allocation that has got another owner since the release. It does not put back an
// address that another pod shows, or that pods no longer get.
//
// A restored allocation is as leaked as it was. Runs hold it for as long as the policy
// says (journal.restoreHold), and then release it after its grace period, unless its pod
// is there or the policy holds it.
//
// The report is true with any error:
//
//   - a *LockedError: a run is in progress, and nothing was done;
//   - an *InputError: the journal lacks what should be put back, or is from another cluster, and
//     nothing was done;
//   - a *PartialError: some records are not restored, perhaps because ctx ended;
//   - any other: nothing was written.
func Restore(ctx context.Context, o RestoreOptions) (report.RestoreReport, error) {
	type method = func(context.Context, string, []ipam.Record) []error
	r := &restoreCall{RestoreOptions: o, free: report.Restored, lost: make(map[int]bool)}
	r.ask = func(b ipam.Backend) method { return b.Restore }
	if o.DryRun {
		r.ask = func(b ipam.Backend) method { return b.Compare }
		r.free, r.planned = report.Restorable, make(map[[3]string]bool)
	}
	r.report = report.NewRestoreReport(report.RunInfo{
		ID: o.ID, StartedAt: o.Now().UTC(), DryRun: o.DryRun, Version: o.Version, Cluster: o.Address, Node: o.Node, StateDir: o.StateDir,
		Selection: o.Selection,
	}, o.Journal.Run)
	r.choose()
	r.warnOfDamage()
	err := r.restore(ctx)
	r.report.Run.FinishedAt = o.Now().UTC()
	r.report.Tally()
	if err == nil {
		err = report.Partial(r.failures)
	}
	return r.report, err
}

// choose takes the records to put back from the journal. If a run tried twice to release an
// allocation, the journal has its record twice: the last one counts.
func (r *restoreCall) choose() {
	seen, selected := make(map[[4]string]int), r.Selection.OfRecords(r.Journal.Records)
	r.records, r.writes = nil, nil
	for n, rec := range r.Journal.Records {
		if ip, err := netip.ParseAddr(rec.IP); len(r.Only) > 0 && (err != nil || !slices.Contains(r.Only, ip)) {
			continue
		}
		if selected != nil && !selected[n] {
			continue
		}
		id := [4]string{rec.Backend, rec.Pool, rec.Key, string(rec.Stored)}
		if first, ok := seen[id]; ok {
			r.writes[first] = r.Journal.WriteOf(n)
			continue
		}
		seen[id] = len(r.records)
		r.records, r.writes = append(r.records, rec), append(r.writes, r.Journal.WriteOf(n))
	}
	r.report.SetRecords(r.records)
}

// warn adds sentences to the report.
func (r *restoreCall) warn(sentences ...string) {
	r.report.Warnings = append(r.report.Warnings, sentences...)
}

// warnOfDamage warns of the parts of the journal that could not be read.
func (r *restoreCall) warnOfDamage() {
	if r.Damage == nil {
		return
	}
	r.failures = append(r.failures, r.Damage)
	for line := range strings.Lines(r.Damage.Error()) {
		r.warn("some records cannot be restored: " + printable.Shorten(strings.TrimSuffix(line, "\n"), printable.MaxText))
	}
}

// restore is Restore, from the lock to the last write.
func (r *restoreCall) restore(ctx context.Context) error {
	if err := cmp.Or(r.seekNodes(), r.checkCluster()); err != nil {
		return err
	}
	if r.DryRun {
		r.Lock = nil
	}
	unlock, err := acquire(ctx, r.Lock, "restore "+r.ID, r.warn)
	if err != nil {
		return err
	}
	defer unlock()
	inv := ipam.TakeInventory(ctx, r.Backends, func(string) bool { return false })
	r.report.Run.Stores = report.StoresOf(inv)
	if err := cmp.Or(r.checkStores(ctx, inv), r.seekPools(ctx, inv)); err != nil {
		return err
	}
	census, err := census.Take(ctx, r.Cluster, census.Scope{Nodes: true})
	if err != nil {
		return fmt.Errorf("census: %w", err)
	}
	free := r.partition(newOccupancy(inv, census))
	if !r.DryRun {
		r.remember(ctx, free)
	}
	// The last release is restored first. Its record is from a time when the store no
	// longer held the others.
	for write := len(r.Journal.Writes); write >= 0; write-- {
		for _, b := range slices.Backward(r.Backends) {
			r.restoreBackend(ctx, b, write, free)
		}
	}
	return nil // if ctx ended, the records that were not begun are among the failures
}

// checkStores returns an *InputError if a store outside the API server is another one than in
// earlier runs, unless that is accepted. If the ledger cannot be read, that is not known.
func (r *restoreCall) checkStores(ctx context.Context, inv ipam.Inventory) error {
	outside := slices.ContainsFunc(inv.Listings, func(l ipam.Listing) bool { return l.Outside != nil })
	if !outside || r.Ledgers == nil || r.AcceptOtherCluster {
		return nil
	}
	known, err := r.Ledgers.Load(ctx)
	if err != nil {
		return nil //nolint:nilerr // as without a ledger
	}
	if others := otherStores(inv, known); len(others) > 0 {
		return ipam.BadInput(fmt.Errorf("%w: %s", ErrAnotherStore, strings.Join(others, "; ")),
			"name the store of the run; to put its allocations back into this one, give --accept-other-cluster")
	}
	return nil
}

// checkCluster returns an *InputError if the journal is from another cluster, unless that is
// accepted. Where it is not known which clusters these are, it warns if they have different addresses.
// One cluster may have several.
func (r *restoreCall) checkCluster() error {
	past, here := r.Journal.Run, r.report.Run.Place()
	known := past.ClusterUID != "" && r.ClusterUID != ""
	switch {
	case known && past.ClusterUID != r.ClusterUID:
		err := fmt.Errorf("the journal is from a run on another cluster, %s: the namespace kube-system has the UID %s there and %s here",
			past.Cluster, past.ClusterUID, r.ClusterUID)
		if !r.AcceptOtherCluster {
			return ipam.BadInput(err, "name the right cluster; to put its allocations back here, give --accept-other-cluster")
		}
		r.warn(err.Error())
	case past.Cluster != "" && past.Cluster != here && (!known || r.Node != ""):
		r.warn(fmt.Sprintf("the journal is from a run against %s; this is %s", past.Cluster, here))
	}
	return nil
}

// remember notes for the next runs what is about to be put back. Otherwise they would
// release it again immediately. An operator restores in an emergency, so a ledger that
// cannot be written is no reason not to.
func (r *restoreCall) remember(ctx context.Context, free []int) {
	if r.Ledgers == nil || len(free) == 0 {
		return
	}
	back := make(map[*ipam.Allocation]ledger.Place, len(free))
	for _, i := range free {
		record := r.records[i]
		a := &ipam.Allocation{Backend: record.Backend, Pool: record.Pool, Key: record.Key, Owner: ipam.Owner{Sandbox: record.Owner.Sandbox}}
		back[a] = ledger.Place{Node: record.Node, Boot: record.Boot, Mirror: record.Mirror}
	}
	left := 0
	memory, err := r.Ledgers.Load(ctx)
	if err == nil || errors.Is(err, ledger.ErrDamaged) {
		now := r.Now()
		left, err = saveLedger(ctx, r.Ledgers, memory.Salted(), func(have ledger.Ledger) ledger.Ledger { return have.WithRestored(maps.All(back), now) })
	}
	switch {
	case errors.Is(err, ledger.ErrLeft):
		r.warn(printable.Error(err))
	case err != nil:
		r.warn("the ledger could not be written, so the next run may release the allocations again: hold them with a rule of the policy: " + printable.Error(err))
	}
	if left > 0 {
		r.warn(fmt.Sprintf("the ledger has no room for %d entries, so a later run may release some of the allocations again: hold them with a rule of the policy", left))
	}
}

// restoreBackend puts back, or compares, the free records of one backend and of one write of the
// journal, pool by pool.
func (r *restoreCall) restoreBackend(ctx context.Context, b ipam.Backend, write int, free []int) {
	var mine []int
	for _, i := range free {
		if r.records[i].Backend == b.Name() && r.writes[i] == write {
			mine = append(mine, i)
		}
	}
	poolOf := func(i int) string { return r.records[i].Pool }
	for _, pool := range ipam.ByPool(mine, poolOf) {
		for batch := range slices.Chunk(pool, ipam.MaxBatch) {
			r.restoreBatch(ctx, b, poolOf(batch[0]), batch)
		}
	}
}

// restoreBatch puts back, or compares, records of one pool. It tries again for those that were not
// decided.
func (r *restoreCall) restoreBatch(ctx context.Context, b ipam.Backend, pool string, batch []int) {
	undecided := batch
	var last []error
	backoff := retry.WithMaxRetries(4, retry.NewExponential(100*time.Millisecond))
	err := retry.Do(ctx, backoff, func(ctx context.Context) error {
		undecided, last = r.attempt(ctx, b, pool, undecided)
		if len(undecided) == 0 {
			return nil
		}
		return retry.RetryableError(last[0])
	})
	for n, i := range undecided {
		if last == nil {
			r.settle(i, report.NotRestored, err) // it had not begun
			continue
		}
		r.settle(i, report.NotRestored, last[n])
	}
}

// taken reports whether a dry run has planned to put another record in the place of this
// one. If not, taken plans this one.
func (r *restoreCall) taken(i int) bool {
	if r.planned == nil {
		return false
	}
	e := r.report.Entries[i]
	place := [3]string{e.Backend, e.Pool, e.Key}
	was := r.planned[place]
	r.planned[place] = true
	return was
}

// attempt asks the backend about a batch once. It settles the records that were decided, and
// returns the others, with an error for each.
func (r *restoreCall) attempt(ctx context.Context, b ipam.Backend, pool string, batch []int) (undecided []int, why []error) {
	records := make([]ipam.Record, len(batch))
	for n, i := range batch {
		records[n] = r.records[i]
	}
	errs := r.ask(b)(ctx, pool, records)
	for n, i := range batch {
		err := ipam.ErrNoAnswer
		if n < len(errs) {
			err = errs[n]
		}
		switch {
		case err == nil && r.taken(i):
			r.settle(i, report.Taken, fmt.Errorf("%w: another record of the journal goes there first", ipam.ErrTaken))
		case err == nil:
			r.settle(i, r.free, nil)
		case errors.Is(err, ipam.ErrPresent) && r.lost[i]:
			r.settle(i, report.Restored, nil) // by an attempt whose answer was lost
		case errors.Is(err, ipam.ErrPresent):
			r.settle(i, report.AlreadyThere, nil)
		case errors.Is(err, ipam.ErrTaken):
			r.settle(i, report.Taken, err)
		case errors.Is(err, ipam.ErrAgain):
			r.lost[i] = r.lost[i] || errors.Is(err, ipam.ErrLost)
			undecided, why = append(undecided, i), append(why, err)
		default:
			r.settle(i, report.NotRestored, err)
		}
	}
	return undecided, why
}

// settle sets the outcome of one record in the report.
func (r *restoreCall) settle(i int, outcome report.RestoreOutcome, err error) {
	e := &r.report.Entries[i]
	e.Outcome = outcome
	if err != nil {
		e.Error = printable.Error(err)
		r.failures = append(r.failures, &report.PoolFailure{Backend: e.Backend, Pool: e.Pool, What: e.Key, Err: err})
	}
	r.Logger.Debug("restore", "backend", e.Backend, "pool", e.Pool, "key", e.Key, "ip", e.IP,
		"pod", e.Owner.Namespace+"/"+e.Owner.Pod, "outcome", outcome, "err", err)
}
