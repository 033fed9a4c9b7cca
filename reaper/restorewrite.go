package reaper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ip-reaper/ip-reaper/policy"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A returning has the records of one address of a pod, such as its entry in a pool and its reservation.
// They go back together or not at all.
type returning []*restoration

// addressesOf returns the addresses of records, the last write first. Its records describe the store after
// the earlier writes. Of two records of one place, the earlier one is of another address: it may go back
// only if the later one does not.
func addressesOf(records []*restoration) []returning {
	type address struct {
		at      string
		pod     ipam.PodRef
		sandbox string // if no pod is named
		later   int    // how many records of the same place are of later writes
	}
	type spot struct {
		address
		place [3]string
	}
	later, indexOf := make(map[spot]int), make(map[address]int)
	var all []returning
	for _, back := range slices.SortedStableFunc(slices.Values(records), func(a, b *restoration) int { return b.write - a.write }) {
		of := address{at: back.at(), pod: back.Owner.PodRef()}
		if of.pod == (ipam.PodRef{}) {
			of.sandbox = back.Owner.Sandbox
		}
		same := spot{of, back.place()}
		later[same]++
		of.later = later[same]
		i, known := indexOf[of]
		if !known {
			i = len(all)
			indexOf[of] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], back)
	}
	return all
}

// addressesAtOnce is how many addresses go back after one look at the stores.
const addressesAtOnce = 200

// atOnce yields addresses of one write at a time. Those of one sandbox stay together: a store may give back
// all or none.
func atOnce(all []returning) iter.Seq[[]returning] {
	return func(yield func([]returning) bool) {
		for len(all) > 0 {
			n := 1
			for n < len(all) && all[n][0].write == all[0][0].write {
				if n >= addressesAtOnce && all[n][0].Owner.Sandbox != all[n-1][0].Owner.Sandbox {
					break
				}
				n++
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

// refused returns the first record that does not go back; nil if there is none.
func (a returning) refused() *restoration {
	for _, back := range a {
		if back.outcome == report.Taken || back.outcome == report.NotRestored {
			return back
		}
	}
	return nil
}

// keepWhole decides, for each address with a record that does not go back, that the others do not either.
func (r *restoreCall) keepWhole(some []returning) {
	for _, a := range some {
		if refused := a.refused(); refused != nil {
			for _, back := range undecided(a) {
				r.settle(back, refused.outcome, refused.asWhole())
			}
		}
	}
}

// asWhole returns why the other records of the address do not go back.
func (back *restoration) asWhole() error {
	return fmt.Errorf("an address goes back as a whole, and not into %s %s: %w", back.Backend, back.Pool, back.err)
}

// place returns the place of the record.
func (back *restoration) place() [3]string { return [3]string{back.Backend, back.Pool, back.Key} }

// at returns the address of the record, or its place if it has none.
func (back *restoration) at() string {
	return cmp.Or(back.IP, strings.Join([]string{back.Backend, back.Pool, back.Key}, "\x00"))
}

// allocation returns the allocation of the record, as far as the engine knows it.
func (back *restoration) allocation() *ipam.Allocation {
	a := &ipam.Allocation{Backend: back.Backend, Pool: back.Pool, Key: back.Key}
	a.IP, _ = netip.ParseAddr(back.IP) // it may have none
	a.Owner = ipam.Owner{Pod: back.Owner.PodRef(), Sandbox: back.Owner.Sandbox}
	return a
}

// list lists the stores.
func (r *restoreCall) list(ctx context.Context) ipam.Inventory {
	return ipam.TakeInventory(ctx, r.Backends, func(string) bool { return false }, r.Protectors...)
}

// occupied returns the addresses that are in use, by an inventory and the census that it takes.
func (r *restoreCall) occupied(ctx context.Context, inv ipam.Inventory) (occupancy, error) {
	census, err := census.Take(ctx, r.Cluster, census.Scope{Nodes: true})
	if err != nil {
		return occupancy{}, fmt.Errorf("census: %w", err)
	}
	return newOccupancy(r.Now(), inv, census), nil
}

// restoreSome puts addresses back. Before the first write, it reads all stores, the pods, and the places of the
// addresses once more. A dry run has done so, and does the same up to there.
func (r *restoreCall) restoreSome(ctx context.Context, o occupancy, some []returning) {
	records := slices.Concat(some...)
	open := undecided(records)
	if len(open) == 0 {
		return
	}
	if !r.DryRun {
		var err error
		if o, err = r.occupied(ctx, r.list(ctx)); err != nil {
			for _, back := range open {
				r.settle(back, report.NotRestored, cmp.Or(ctx.Err(), err))
			}
			return
		}
		r.refuse(o, open)
		r.keepWhole(some)
	}
	permit := r.whileFresh(r.Now())
	for _, b := range slices.Backward(r.Backends) {
		r.ask(ctx, b, undecided(records), onlyLook)
	}
	for _, back := range records {
		back.touched = false // that was only a look
		if back.outcome == report.Restorable {
			back.task = task{}
		}
	}
	r.keepWhole(some)
	r.admit(o, some)
	for _, b := range slices.Backward(r.Backends) {
		if r.DryRun {
			break
		}
		r.ask(ipam.SendBy(ctx, time.Time{}, permit), b, undecided(records), permit)
		r.keepWhole(some)
	}
	for _, back := range undecided(records) {
		r.settle(back, report.Restorable, nil) // in a dry run
	}
	r.takeBack(ctx, some)
}

// errStalled says that nothing was written because the look at the stores was too long ago.
var errStalled = errors.New("the restore stalled, and others may have got the address: restore again")

// whileFresh returns a permit that ends when the look before the writes is too old by either clock, or
// another holder may have the lock: the store compares the place alone, and another pool may have given out
// the address since.
func (r *restoreCall) whileFresh(looked time.Time) ipam.Permit {
	return func() error {
		stale := ipam.AgeOf(looked, r.Now()) > ipam.FreshnessNeverAdopted
		if stale || r.Lock != nil && r.Lock.Lapsed() != nil {
			return errStalled
		}
		return nil
	}
}

// errFree is the answer for a record whose place is free.
var errFree = errors.New("its place is free")

// onlyLook is a permit that refuses every write.
func onlyLook() error { return errFree }

// admit decides what cannot go back because another record of the journal goes there first.
func (r *restoreCall) admit(o occupancy, some []returning) {
	for _, a := range some {
		open := undecided(a)
		for _, back := range open {
			if slices.ContainsFunc(r.admitted[back.at()], func(first *restoration) bool {
				other := first.allocation()
				return first.place() == back.place() || o.compete(back.allocation(), other) && !sharesOwner(back.allocation(), other)
			}) {
				r.settle(back, report.Taken, fmt.Errorf("%w: another record of the journal goes there first", ipam.ErrTaken))
			}
		}
		r.keepWhole([]returning{a})
		for _, back := range undecided(a) {
			r.admitted[back.at()] = append(r.admitted[back.at()], back)
		}
	}
}

// ask asks a backend to put back its records, pool by pool.
func (r *restoreCall) ask(ctx context.Context, b ipam.Backend, records []*restoration, permit ipam.Permit) {
	c := carrier[*restoration]{
		try: func(ctx context.Context, some []*restoration, _, _ bool) ([]error, error) {
			asked := make([]ipam.Record, len(some))
			for i, back := range some {
				asked[i] = back.Record
			}
			return b.Restore(ctx, asked[0].Pool, asked, permit), nil
		},
		settle: func(some []*restoration, answers []error) {
			for i, back := range some {
				r.answered(back, answers[i])
			}
		},
		halted: func() error { return nil }, // the permit says so
	}
	mine := slices.DeleteFunc(records, func(back *restoration) bool { return back.Backend != b.Name() })
	for _, pool := range ipam.ByPool(mine, func(back *restoration) string { return back.Pool }) {
		for batch := range slices.Chunk(pool, ipam.MaxBatch) {
			open, _ := c.carry(ctx, batch)
			for _, back := range open {
				r.settle(back, report.NotRestored, cmp.Or(back.last, ctx.Err())) // without a last try, it had not begun
			}
		}
	}
}

// answered takes the answer of a store to Backend.Restore.
func (r *restoreCall) answered(back *restoration, err error) {
	there := err == nil || errors.Is(err, ipam.ErrPresent) && back.lost != nil // by a try whose answer was lost
	switch {
	case there:
		back.touched = true
		r.settle(back, report.Restored, nil)
	case errors.Is(err, errFree):
		back.outcome = report.Restorable
	case errors.Is(err, ipam.ErrPresent):
		r.settle(back, report.AlreadyThere, nil)
	case errors.Is(err, ipam.ErrTaken):
		r.settle(back, report.Taken, err)
	case errors.Is(err, errStalled): // it wrote nothing
		r.settle(back, report.NotRestored, errStalled)
	case errors.Is(err, ipam.ErrAgain):
		back.touched = back.touched || errors.Is(err, ipam.ErrLost)
	default:
		back.touched = true
		r.settle(back, report.NotRestored, err)
	}
}

// takeBack releases again what the restore wrote of an address that does not go back as a whole. It does so
// as the store's backend releases, after two looks at the owner. What stays is reported as half back: if the
// owner is there, or could not be read, or if it is not certain what was written.
func (r *restoreCall) takeBack(ctx context.Context, some []returning) {
	var orphans map[[3]string]*attempt
	var confirmer *Confirmer
	var err error
	for _, a := range some {
		refused := a.refused()
		if refused == nil {
			continue
		}
		for _, back := range a {
			if back.outcome != report.Restored {
				continue
			}
			if confirmer == nil && err == nil {
				orphans, confirmer, err = r.orphans(ctx)
			}
			stays := err
			switch {
			case back.lost != nil || refused.touched:
				stays = errors.New("it is not certain what was written")
			case err == nil:
				stays = r.releaseAgain(ctx, back, orphans, confirmer)
			}
			if stays == nil {
				r.settle(back, refused.outcome, fmt.Errorf("taken back: %w", refused.asWhole()))
				continue
			}
			r.settle(back, report.Restored, fmt.Errorf("half back: %w; and it stays: %w", refused.asWhole(), cmp.Or(ctx.Err(), stays)))
		}
	}
}

// orphans lists the stores and the pods, and returns the releases of what is an orphan now, by place.
func (r *restoreCall) orphans(ctx context.Context) (map[[3]string]*attempt, *Confirmer, error) {
	inv := r.list(ctx)
	if !inv.Complete() {
		return nil, nil, errors.New("the stores could not be read")
	}
	census, err := census.Take(ctx, r.Cluster, census.Scope{Nodes: true})
	if err != nil {
		return nil, nil, err
	}
	p := policy.Default()
	p.GracePeriod, p.MinAge, p.Protection.StatefulSets = &policy.Duration{}, &policy.Duration{}, policy.Ignore
	all := make(map[[3]string]*attempt)
	for _, a := range undecided(attemptsOf(judge.MakePlan(judge.Judge(r.Now(), p, inv, census, ledger.Ledger{})))) {
		of := a.allocation()
		all[[3]string{of.Backend, of.Pool, of.Key}] = a
	}
	confirmer := NewConfirmer(r.Cluster, census, r.Backends...)
	confirmer.guard = &guard{lock: r.Lock}
	return all, confirmer, nil
}

// releaseAgain releases what the restore put back, as a run does, if it is among the orphans. It returns why it
// stays.
func (r *restoreCall) releaseAgain(ctx context.Context, back *restoration, orphans map[[3]string]*attempt, confirmer *Confirmer) error {
	b := r.Backends[slices.IndexFunc(r.Backends, func(b ipam.Backend) bool { return b.Name() == back.Backend })]
	answers := b.Restore(ctx, back.Pool, []ipam.Record{back.Record}, onlyLook)
	if len(answers) == 1 && (errors.Is(answers[0], errFree) || errors.Is(answers[0], ipam.ErrTaken)) {
		return nil // the plugin has removed it
	}
	a, is := orphans[back.place()]
	if !is || a.allocation().Owner.Pod != back.Owner.PodRef() || a.allocation().Owner.Sandbox != back.Owner.Sandbox {
		return errors.New("it has an owner, or may have one")
	}
	s := &sender{
		messages:  &messages{logger: r.Logger, shown: true},
		backend:   b,
		confirmer: confirmer,
		room:      semaphore.NewWeighted(batchesAtOnce),
	}
	s.releaseBatch(ctx, []*attempt{a})
	mender, mends := b.(ipam.Mender)
	switch {
	case a.released():
		return nil
	case mends:
		return errors.Join(a.err, mender.Mend(ctx, *a.allocation()))
	default:
		return a.err
	}
}

// settle decides one record.
func (r *restoreCall) settle(back *restoration, outcome report.Fate, err error) {
	back.outcome, back.err = outcome, err
	if err != nil && outcome != report.Taken { // those are counted at the end
		r.failures = append(r.failures, &report.PoolFailure{Backend: back.Backend, Pool: back.Pool, What: back.Key, Err: err})
	}
	r.Logger.Debug("restore", "backend", back.Backend, "pool", back.Pool, "key", back.Key, "ip", back.IP,
		"pod", back.Owner.Namespace+"/"+back.Owner.Pod, "outcome", outcome, "err", err)
}
