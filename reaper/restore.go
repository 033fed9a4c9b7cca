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

	"github.com/ip-reaper/ip-reaper/policy"
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
	ID string
	report.Origin

	ClusterUID         string // of the namespace kube-system; empty if it cannot be read
	AcceptOtherCluster bool   // the journal may be from another cluster

	// AcceptSecondAddress is set if a pod that has another address by now gets its old one, too, and a pod
	// whose old address another one may have, as far as a pool that cannot be read tells.
	AcceptSecondAddress bool

	Journal journal.Journal
	Damage  error // why parts of the journal could not be read; nil if it is whole
	DryRun  bool

	// Selection narrows what is put back, by addresses, pools and nodes. The zero Selection does not.
	Selection judge.Selection

	Backends []ipam.Backend // in the order in which they release
	Cluster  census.Cluster

	Protectors []ipam.Protector // what one keeps for another pod does not go back

	// Shares reports whether a store may have an address of a network of another one. Nil: no store does.
	Shares func(store, other string) bool

	Ledgers ledger.Store // nil: no run learns of the restore, and no history has it
	Lock    Lock         // nil: a run may be in progress

	// Ending says how the program ends: see Options.
	Ending func(err error) (exitCode int, text string)

	Now    func() time.Time
	Logger *slog.Logger

	// ClockSkew says how far Now is ahead of the API server's clock: see Options.
	ClockSkew func() (time.Duration, bool)
}

// A restoreCall is the state of one call of Restore.
type restoreCall struct {
	RestoreOptions
	info     report.RunInfo
	chosen   []*restoration // in the order of the journal
	warnings []string
	failures []error
	admitted map[string][]*restoration // what goes back, by address

	unsaved string        // why the ledger does not know what is put back; empty if it does
	marked  time.Time     // of the marks in the ledger; zero if it has none
	before  ledger.Ledger // as it was before them
}

// A restoration is all that a restore did about one record.
type restoration struct {
	task
	ipam.Record
	write   int    // the last write of the journal that has the record
	note    string // what speaks against putting it back, and why it goes back all the same
	touched bool   // it is not certain that nothing was written
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
	r := &restoreCall{RestoreOptions: o, info: report.RunInfo{
		ID:        o.ID,
		StartedAt: o.Now().UTC(),
		DryRun:    o.DryRun,
		Origin:    o.Origin,
		Selection: o.Selection,
	}}
	if o.DryRun {
		r.Lock = nil
	}
	r.admitted = make(map[string][]*restoration)
	r.chosen = r.choose()
	r.warnOfDamage()
	err := r.restore(ctx)
	return r.report(), err
}

// report returns the report of the restore.
func (r *restoreCall) report() report.RestoreReport {
	entries := make([]report.RestoreEntry, len(r.chosen))
	for i, back := range r.chosen {
		entries[i] = report.RestoreEntry{
			Backend: back.Backend, Pool: back.Pool, Key: back.Key, IP: back.IP, Owner: back.Owner,
			Outcome: cmp.Or(back.outcome, report.NotRestored), Note: back.note,
		}
		if back.err != nil {
			entries[i].Error = printable.Error(back.err)
		}
	}
	info := r.info
	info.FinishedAt = r.Now().UTC()
	return report.MakeRestore(info, r.Journal.Run, entries, r.warnings)
}

// choose returns the records to put back. If a run tried twice to release an allocation, the journal
// has its record twice: the last one counts.
func (r *restoreCall) choose() []*restoration {
	var chosen []*restoration
	seen, selected := make(map[[4]string]*restoration), r.Selection.OfRecords(r.Journal.Records)
	for n, rec := range r.Journal.Records {
		if selected != nil && !selected[n] {
			continue
		}
		id := [4]string{rec.Backend, rec.Pool, rec.Key, string(rec.Stored)}
		if seen[id] == nil {
			seen[id] = &restoration{Record: rec}
			chosen = append(chosen, seen[id])
		}
		seen[id].write = r.Journal.WriteOf(n)
	}
	return chosen
}

// warn adds sentences to the report.
func (r *restoreCall) warn(sentences ...string) {
	r.warnings = append(r.warnings, sentences...)
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

// restore is Restore, from the lock to the last write. The ledger learns how a restore ended that found
// no mistake in what the user gave.
func (r *restoreCall) restore(ctx context.Context) error {
	if err := cmp.Or(r.resolveNodes(), r.checkCluster()); err != nil {
		return err
	}
	unlock, err := acquire(ctx, r.Lock, "restore "+r.ID, r.warn)
	if err != nil {
		return err
	}
	defer unlock()
	err = r.putBack(ctx)
	if err == nil {
		err = report.Partial(r.failures)
	}
	var mistake *ipam.InputError
	if !r.DryRun && r.Ledgers != nil && !errors.As(err, &mistake) {
		own := r.own()
		own.Ended = true
		own.ExitCode, own.Error = endOf(r.Ending, err)
		saveEnd(ctx, r.Ledgers, func(have ledger.Ledger) ledger.Ledger {
			return have.WithoutRestored(r.unwritten(), r.marked, r.before).WithRun(own, nil)
		}, r.Logger)
	}
	return err
}

// own returns the restore as the ledger has it before it ends.
func (r *restoreCall) own() ledger.Run {
	own := ledger.Run{
		ID: r.ID, Began: r.info.StartedAt.Unix(), By: shortened(r.By), Selection: shortened(r.Selection.String()), RestoreOf: shortened(r.Journal.Run.ID),
	}
	s := r.report().Addresses()
	own.Restore = ledger.Restore{Restored: s.Restored, Present: s.Present, Taken: s.Taken, Failed: s.Failed}
	return own
}

// putBack puts back what can be.
func (r *restoreCall) putBack(ctx context.Context) error {
	inv := r.list(ctx)
	r.info.Stores = report.StoresOf(inv)
	if err := cmp.Or(r.checkStores(ctx, inv), r.resolvePools(ctx, inv)); err != nil {
		return err
	}
	o, err := r.occupied(ctx, inv)
	if err != nil {
		return err
	}
	r.refuse(o, r.chosen)
	addresses := addressesOf(r.chosen)
	r.keepWhole(addresses)
	free := undecided(r.chosen)
	if !r.DryRun {
		r.rememberRestored(ctx, free)
	}
	for some := range atOnce(addresses) {
		r.restoreSome(ctx, o, some)
	}
	taken := 0
	for _, back := range r.chosen {
		if back.outcome == report.Taken {
			taken++
		}
	}
	if taken > 0 {
		r.failures = append(r.failures, ipam.Worded(printable.Counted(taken, "allocation")+" cannot be put back: taken by now; restore again once their owners have ended", ipam.ErrTaken))
	}
	// A restore that puts nothing back leaves nothing that a run could release.
	if r.unsaved != "" && slices.ContainsFunc(free, func(back *restoration) bool { return back.outcome == report.Restored || back.lost != nil }) {
		r.warn(r.unsaved)
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
	past, here := r.Journal.Run, r.info.Place()
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

// serverTime returns the time by the API server's clock, as far as that is known. It warns of a clock that
// differs: an operator restores in an emergency.
func (r *restoreCall) serverTime() time.Time {
	now := r.Now()
	if r.ClockSkew == nil {
		return now
	}
	skew, known := r.ClockSkew()
	if !known {
		return now
	}
	if differs := clockDiffers(skew, judge.ClockTolerance(policy.Default())); differs != "" {
		r.warn(differs + ": what is put back is held by the API server's time")
	}
	return now.Add(-skew)
}

// unwritten returns the allocations that the restore certainly did not write, and that it did not find in
// their stores. Two records of one allocation have one mark.
func (r *restoreCall) unwritten() []*ipam.Allocation {
	type mark struct {
		place [3]string
		owner ipam.EntryOwner
	}
	stays := make(map[mark]bool)
	for _, back := range r.chosen {
		if back.touched || back.outcome == report.AlreadyThere {
			stays[mark{back.place(), back.Owner}] = true
		}
	}
	var not []*ipam.Allocation
	for _, back := range r.chosen {
		if !stays[mark{back.place(), back.Owner}] {
			not = append(not, back.allocation())
		}
	}
	return not
}

// rememberRestored tells the next runs what is about to be put back. Otherwise they would
// release it again immediately. An operator restores in an emergency, so a ledger that
// cannot be written is no reason not to.
func (r *restoreCall) rememberRestored(ctx context.Context, free []*restoration) {
	if r.Ledgers == nil || len(free) == 0 {
		return
	}
	back := make(map[*ipam.Allocation]ledger.Place, len(free))
	for _, rec := range free {
		back[rec.allocation()] = ledger.Place{Node: rec.Node, Boot: rec.Boot, Mirror: rec.Mirror}
	}
	left := 0
	memory, err := r.Ledgers.Load(ctx)
	if err == nil || errors.Is(err, ledger.ErrDamaged) {
		r.marked = r.serverTime()
		own := r.own()
		own.Restore = ledger.Restore{} // most is not decided yet
		left, err = saveLedger(ctx, r.Ledgers, memory.Salted(), func(have ledger.Ledger) ledger.Ledger {
			r.before = have
			return have.WithRestored(maps.All(back), r.marked).WithRun(own, nil)
		})
	}
	if err != nil {
		r.unsaved = "the ledger could not be written, so the next run may release the allocations again: hold them with a rule of the policy: " + printable.Error(err)
	}
	if left > 0 {
		r.warn(fmt.Sprintf("the ledger has no room for %d entries, so a later run may release some of the allocations again: hold them with a rule of the policy", left))
	}
}

// nothingBack is the hint of a restore whose journal lacks what should be put back.
const nothingBack = "nothing was put back; history --run ID lists what the journal has"

// resolveNodes returns an *InputError if the journal has nothing from a node of the selection.
func (r *restoreCall) resolveNodes() error {
	var nodes []string
	for _, rec := range r.Journal.Records {
		nodes = append(nodes, rec.Owner.Node)
	}
	found := search{where: r.where()}
	for _, name := range r.Selection.Nodes {
		if !slices.Contains(nodes, name) {
			found.miss("node", name, nodes)
		}
	}
	return found.err(nothingBack)
}

// resolvePools finds the pools of the selection among those of the journal. It returns an
// *InputError if the journal has nothing from one of them.
func (r *restoreCall) resolvePools(ctx context.Context, inv ipam.Inventory) error {
	if len(r.Selection.Pools) == 0 {
		return nil
	}
	inv = r.recorded(inv)
	layout, warnings := survey(ctx, r.Backends, inv)
	r.warn(warnings...)
	layout.Networks = slices.DeleteFunc(layout.Networks, func(n report.NetworkReport) bool { return len(n.Pools) == 0 })
	found := search{where: r.where()}
	var unknown []string
	r.Selection.Found, unknown = poolsOf(r.Selection.Pools, inv, layout)
	for _, name := range unknown {
		found.miss("pool", name, layout.PoolNames())
	}
	r.chosen = r.choose()
	return found.err(nothingBack)
}

// recorded returns an inventory with only the pools of the journal. A pool that is gone has its
// name, which for a Calico block is its range.
func (r *restoreCall) recorded(inv ipam.Inventory) ipam.Inventory {
	listed := make(map[ipam.PoolRef]ipam.Pool)
	for _, l := range inv.Listings {
		for _, pool := range l.Pools {
			listed[ipam.PoolRef{Backend: l.Backend, Name: pool.Name}] = pool
		}
	}
	pools, seen := make(map[string][]ipam.Pool), make(map[ipam.PoolRef]bool)
	for _, rec := range r.Journal.Records {
		ref := ipam.PoolRef{Backend: rec.Backend, Name: rec.Pool}
		if seen[ref] {
			continue
		}
		seen[ref] = true
		pool, ok := listed[ref]
		if !ok {
			pool.Name = rec.Pool
			pool.Range, _ = netip.ParsePrefix(rec.Pool)
		}
		pools[rec.Backend] = append(pools[rec.Backend], pool)
	}
	inv.Listings = slices.Clone(inv.Listings)
	for i := range inv.Listings {
		inv.Listings[i].Pools = pools[inv.Listings[i].Backend]
	}
	return inv
}

// where says where a name was looked for.
func (r *restoreCall) where() string { return " in the journal of run " + r.Journal.Run.ID }
