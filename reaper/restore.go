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
	ID      string
	Version string
	Address string // of the API server, for the report
	By      string // for the ledger: see journal.Run.By

	Node     string // see Options
	StateDir string

	ClusterUID         string // of the namespace kube-system; empty if it cannot be read
	AcceptOtherCluster bool   // the journal may be from another cluster

	Journal journal.Journal
	Damage  error // why parts of the journal could not be read; nil if it is whole
	DryRun  bool

	// Selection narrows what is put back, by addresses, pools and nodes. The zero Selection does not.
	Selection judge.Selection

	Backends []ipam.Backend // in the order in which they release
	Cluster  census.Cluster
	Ledgers  ledger.Store // nil: no run learns of the restore, and no history has it
	Lock     Lock         // nil: a run may be in progress

	// Ending says how the program ends: see Options.
	Ending func(err error) (exitCode int, text string)

	Now    func() time.Time
	Logger *slog.Logger
}

// A restoreCall is the state of one call of Restore.
type restoreCall struct {
	RestoreOptions
	info     report.RunInfo
	chosen   []*restoration // in the order of the journal
	warnings []string
	failures []error
	unsaved  string // why the ledger does not know what is put back; empty if it does

	planned map[[3]string]bool // the places that records of a dry run would take; nil in any other
}

// A restoration is all that a restore did about one record.
type restoration struct {
	ipam.Record
	write   int                   // the last write of the journal that has the record
	outcome report.RestoreOutcome // empty until it is decided
	err     error                 // why it was not put back
	last    error                 // why the last try decided nothing
	lost    bool                  // a try may have put it back without an answer
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
		ID: o.ID, StartedAt: o.Now().UTC(), DryRun: o.DryRun, Version: o.Version, Cluster: o.Address, Node: o.Node, StateDir: o.StateDir,
		Selection: o.Selection,
	}}
	if o.DryRun {
		r.Lock = nil
		r.planned = make(map[[3]string]bool)
	}
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
			Outcome: cmp.Or(back.outcome, report.NotRestored),
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
		saveEnd(ctx, r.Ledgers, own, nil, r.Logger)
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
	inv := ipam.TakeInventory(ctx, r.Backends, func(string) bool { return false })
	r.info.Stores = report.StoresOf(inv)
	if err := cmp.Or(r.checkStores(ctx, inv), r.resolvePools(ctx, inv)); err != nil {
		return err
	}
	census, err := census.Take(ctx, r.Cluster, census.Scope{Nodes: true})
	if err != nil {
		return fmt.Errorf("census: %w", err)
	}
	r.settleTaken(newOccupancy(inv, census))
	free := slices.DeleteFunc(slices.Clone(r.chosen), func(back *restoration) bool { return back.outcome != "" })
	if !r.DryRun {
		r.rememberRestored(ctx, free)
	}
	// The last release is restored first. Its record is from a time when the store no
	// longer held the others.
	for write := len(r.Journal.Writes); write >= 0; write-- {
		for _, b := range slices.Backward(r.Backends) {
			r.restoreBackend(ctx, b, write, free)
		}
	}
	taken := 0
	for _, back := range r.chosen {
		if back.outcome == report.Taken {
			taken++
		}
	}
	if taken > 0 {
		r.failures = append(r.failures, ipam.Worded(printable.Counted(taken, "allocation")+" cannot be put back: taken by now", ipam.ErrTaken))
	}
	// A restore that puts nothing back leaves nothing that a run could release.
	if r.unsaved != "" && slices.ContainsFunc(free, func(back *restoration) bool { return back.outcome == report.Restored || back.lost }) {
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

// rememberRestored tells the next runs what is about to be put back. Otherwise they would
// release it again immediately. An operator restores in an emergency, so a ledger that
// cannot be written is no reason not to.
func (r *restoreCall) rememberRestored(ctx context.Context, free []*restoration) {
	if r.Ledgers == nil || len(free) == 0 {
		return
	}
	back := make(map[*ipam.Allocation]ledger.Place, len(free))
	for _, rec := range free {
		a := &ipam.Allocation{Backend: rec.Backend, Pool: rec.Pool, Key: rec.Key, Owner: ipam.Owner{Sandbox: rec.Owner.Sandbox}}
		back[a] = ledger.Place{Node: rec.Node, Boot: rec.Boot, Mirror: rec.Mirror}
	}
	left := 0
	memory, err := r.Ledgers.Load(ctx)
	if err == nil || errors.Is(err, ledger.ErrDamaged) {
		now, own := r.Now(), r.own()
		own.Restore = ledger.Restore{} // most is not decided yet
		left, err = saveLedger(ctx, r.Ledgers, memory.Salted(), func(have ledger.Ledger) ledger.Ledger {
			return have.WithRestored(maps.All(back), now).WithRun(own, nil)
		})
	}
	if err != nil {
		r.unsaved = "the ledger could not be written, so the next run may release the allocations again: hold them with a rule of the policy: " + printable.Error(err)
	}
	if left > 0 {
		r.warn(fmt.Sprintf("the ledger has no room for %d entries, so a later run may release some of the allocations again: hold them with a rule of the policy", left))
	}
}

// restoreBackend puts back, or compares, the free records of one backend and of one write of the
// journal, pool by pool.
func (r *restoreCall) restoreBackend(ctx context.Context, b ipam.Backend, write int, free []*restoration) {
	var mine []*restoration
	for _, back := range free {
		if back.Backend == b.Name() && back.write == write {
			mine = append(mine, back)
		}
	}
	for _, pool := range ipam.ByPool(mine, func(back *restoration) string { return back.Pool }) {
		for batch := range slices.Chunk(pool, ipam.MaxBatch) {
			r.restoreBatch(ctx, b, batch)
		}
	}
}

// restoreBatch puts back, or compares, records of one pool. It tries again for those that were not
// decided.
func (r *restoreCall) restoreBatch(ctx context.Context, b ipam.Backend, batch []*restoration) {
	open := batch
	backoff := retry.WithMaxRetries(4, retry.NewExponential(100*time.Millisecond))
	err := retry.Do(ctx, backoff, func(ctx context.Context) error {
		open = r.try(ctx, b, open)
		if len(open) == 0 {
			return nil
		}
		return retry.RetryableError(open[0].last)
	})
	for _, back := range open {
		r.settle(back, report.NotRestored, cmp.Or(back.last, err)) // without a last try, it had not begun
	}
}

// try asks the backend about a batch once. It returns the records that were not decided. A dry run
// has no way to put anything back.
func (r *restoreCall) try(ctx context.Context, b ipam.Backend, batch []*restoration) (open []*restoration) {
	ask, free := b.Restore, report.Restored
	if r.DryRun {
		ask, free = b.Compare, report.Restorable
	}
	records := make([]ipam.Record, len(batch))
	for n, back := range batch {
		records[n] = back.Record
	}
	errs := ask(ctx, batch[0].Pool, records)
	for n, back := range batch {
		err := ipam.ErrNoAnswer
		if n < len(errs) {
			err = errs[n]
		}
		switch {
		case err == nil && r.plannedBefore(back):
			r.settle(back, report.Taken, fmt.Errorf("%w: another record of the journal goes there first", ipam.ErrTaken))
		case err == nil:
			r.settle(back, free, nil)
		case errors.Is(err, ipam.ErrPresent) && back.lost:
			r.settle(back, report.Restored, nil) // by a try whose answer was lost
		case errors.Is(err, ipam.ErrPresent):
			r.settle(back, report.AlreadyThere, nil)
		case errors.Is(err, ipam.ErrTaken):
			r.settle(back, report.Taken, err)
		case errors.Is(err, ipam.ErrAgain):
			back.last = err
			back.lost = back.lost || errors.Is(err, ipam.ErrLost)
			open = append(open, back)
		default:
			r.settle(back, report.NotRestored, err)
		}
	}
	return open
}

// plannedBefore reports whether a dry run has planned to put another record in the place of this
// one. If not, it plans this one.
func (r *restoreCall) plannedBefore(back *restoration) bool {
	if r.planned == nil {
		return false
	}
	place := [3]string{back.Backend, back.Pool, back.Key}
	before := r.planned[place]
	r.planned[place] = true
	return before
}

// settle decides one record.
func (r *restoreCall) settle(back *restoration, outcome report.RestoreOutcome, err error) {
	back.outcome, back.err = outcome, err
	if err != nil && outcome != report.Taken { // those are counted at the end
		r.failures = append(r.failures, &report.PoolFailure{Backend: back.Backend, Pool: back.Pool, What: back.Key, Err: err})
	}
	r.Logger.Debug("restore", "backend", back.Backend, "pool", back.Pool, "key", back.Key, "ip", back.IP,
		"pod", back.Owner.Namespace+"/"+back.Owner.Pod, "outcome", outcome, "err", err)
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
	for _, name := range r.Selection.Pools {
		if _, known := poolsNamed(name, inv, layout); !known {
			found.miss("pool", name, layout.PoolNames())
		}
	}
	r.Selection.Found = poolsOf(r.Selection.Pools, inv, layout)
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

// An occupancy is an index of the addresses that are in use now: those that the stores
// hold, those that objects protect for a pod, and those that pods and nodes show.
type occupancy struct {
	facts    *judge.Facts
	census   census.Census
	listings map[string]ipam.Listing
	taken    map[netip.Addr][]*ipam.Allocation
	reserved map[netip.Addr][]*ipam.Allocation // by the addresses that an object which names a pod protects
}

// newOccupancy indexes an inventory and the census after it.
func newOccupancy(inv ipam.Inventory, census census.Census) occupancy {
	o := occupancy{
		census:   census,
		facts:    judge.NewFacts(time.Time{}, policy.Default(), inv, census, ledger.Ledger{}),
		listings: make(map[string]ipam.Listing), taken: make(map[netip.Addr][]*ipam.Allocation),
		reserved: make(map[netip.Addr][]*ipam.Allocation),
	}
	for _, l := range inv.Listings {
		o.listings[l.Backend] = l
	}
	for a := range inv.Allocations() {
		if a.HoldsAddress() {
			o.taken[a.IP] = append(o.taken[a.IP], a)
		}
		if a.Protects != nil && a.NamesPod() {
			for _, ip := range a.Protects.IPs {
				o.reserved[ip] = append(o.reserved[ip], a)
			}
		}
	}
	return o
}

// settleTaken decides the records that cannot be put back.
func (r *restoreCall) settleTaken(o occupancy) {
	for _, back := range r.chosen {
		switch l, ok := o.listings[back.Backend]; {
		case !ok:
			r.settle(back, report.NotRestored, fmt.Errorf("the program has no backend %q", back.Backend))
			continue
		case l.Status == ipam.StatusFailed || l.Status == ipam.StatusSkipped:
			r.settle(back, report.NotRestored, fmt.Errorf("%s: %s", back.Backend, l.Message))
			continue
		}
		if err := o.conflict(back.Record); err != nil {
			r.settle(back, report.Taken, err)
			continue
		}
		back.InUse = o.inUse(back.Record)
	}
}

// inUse reports whether the pod of the record still has its address, as its status says. A tenant
// may write anything into annotations, and a forged journal anything into a record.
func (o occupancy) inUse(rec ipam.Record) bool {
	ip, err := netip.ParseAddr(rec.IP)
	pod, _ := o.census.Pod(rec.Owner.PodRef())
	return err == nil && !pod.Finished && pod.Proves(ip)
}

// conflict returns an error that wraps ErrTaken if the address of the record has another
// owner, whether or not the place of the record is free.
func (o occupancy) conflict(rec ipam.Record) error {
	ip, err := netip.ParseAddr(rec.IP)
	if err != nil {
		return nil // the record has no address
	}
	pod := rec.Owner.PodRef()
	a := &ipam.Allocation{Backend: rec.Backend, Pool: rec.Pool, Key: rec.Key, IP: ip, Owner: ipam.Owner{Pod: pod}}
	for claim := range o.facts.Case(a).ClaimsOfOthers {
		if !claim.By.MayBe(pod) { // a guest may have the address from this pod
			return fmt.Errorf("%w: %s", ipam.ErrTaken, claim)
		}
	}
	for _, by := range o.reserved[ip] {
		if pod != (ipam.PodRef{}) && pod != by.Owner.Pod {
			return fmt.Errorf("%w: %s keeps the address for %s", ipam.ErrTaken, by.Name(), by.Owner)
		}
	}
	for _, other := range o.taken[ip] {
		if o.compete(a, other) && !sharesOwner(rec, *other) {
			return fmt.Errorf("%w: the address is allocated to %s", ipam.ErrTaken, other.Owner)
		}
	}
	return nil
}

// compete reports whether two different allocations of one address are, or may be, of
// the same network.
func (o occupancy) compete(a, b *ipam.Allocation) bool {
	if a.Backend == b.Backend && a.Pool == b.Pool && a.Key == b.Key {
		return false
	}
	here, there := o.facts.PoolOf(a).Network, o.facts.PoolOf(b).Network
	return here != "" && here == there || a.Backend == b.Backend && (here == "" || there == "")
}

// sharesOwner reports whether it is certain that the other allocation is for the same
// pod; or for the same sandbox, if the record names no pod.
func sharesOwner(r ipam.Record, other ipam.Allocation) bool {
	switch pod := r.Owner.PodRef(); {
	case other.Unreadable != "" || other.Foreign != "":
		return false
	case pod != ipam.PodRef{}:
		return other.Owner.Pod == pod
	default:
		return other.Owner.Pod == ipam.PodRef{} && r.Owner.Sandbox != "" && other.Owner.Sandbox == r.Owner.Sandbox
	}
}
