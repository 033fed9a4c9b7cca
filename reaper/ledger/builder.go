package ledger

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A Builder makes the ledger that follows another one, from entries in any order. Of
// several values for one key, the largest counts. Its methods are for one goroutine.
type Builder struct {
	before, made Ledger
	kept         ledgerTable[string] // places of the ledger before: any other one counts more
}

// NewBuilder returns a builder with the salt, the figures, the doubt, the runs and the stores of
// the ledger before.
func NewBuilder(before Ledger) *Builder {
	return &Builder{before: before, made: Ledger{
		Figures: before.Figures, Doubt: before.Doubt, Runs: before.Runs, Stores: before.Stores, salt: before.salt,
	}}
}

// Expect makes room for this many places at once. A table that grows by itself leaves behind five
// times what it holds in the end.
func (b *Builder) Expect(places int) { b.made.nodes = slices.Grow(b.made.nodes, places) }

// Believe sets the figures to those of a census that is believed.
func (b *Builder) Believe(f census.Figures) { b.made.Figures, b.made.Doubt = f, Doubt{} }

// Store sets the identity of the store of a backend. Without one, it forgets the store.
func (b *Builder) Store(backend, id string) {
	stores := maps.Clone(b.made.Stores)
	if stores == nil {
		stores = make(map[string]string)
	}
	if stores[backend] = id; id == "" {
		delete(stores, backend)
	}
	b.made.Stores = stores
}

// Seen adds since when the allocation has been ownerless: while its pod was present, or after
// it was gone.
func (b *Builder) Seen(a *ipam.Allocation, present bool, since time.Time) {
	b.made.seen.add(a.Backend, b.made.salt.seenHash(a, present), ToSecond(since).Unix())
}

// KeepSeen adds that time from the ledger before, if it has one.
func (b *Builder) KeepSeen(a *ipam.Allocation, present bool) {
	if len(b.before.seen) == 0 { // a key costs time
		return
	}
	hash := b.made.salt.seenHash(a, present)
	if at, known := b.before.seen.find(hash); known {
		b.made.seen.add(a.Backend, hash, at)
	}
}

// Place adds where the pod of the allocation was last seen. It adds nothing for the zero Place.
func (b *Builder) Place(a *ipam.Allocation, p Place) {
	if p != (Place{}) {
		b.made.nodes.add(a.Backend, b.made.salt.placeHash(a), p.String())
	}
}

// Grace adds how long the pod of the allocation may take to end. It adds nothing for 0, the
// default.
func (b *Builder) Grace(a *ipam.Allocation, grace time.Duration) {
	if grace > 0 {
		b.made.graces.add(a.Backend, b.made.salt.graceHash(a), int32((grace+time.Second-1)/time.Second))
	}
}

// Restored adds when a restore put the allocation back. It adds nothing for the zero time.
func (b *Builder) Restored(a *ipam.Allocation, at time.Time) {
	if !at.IsZero() {
		b.made.restored.add(a.Backend, b.made.salt.spotHash(a), ToSecond(at).Unix())
	}
}

// KeepOthers adds what the ledger before has for allocations that may exist although they are not
// among these, which were decided: those of stores that were not listed and, if a store was listed in
// part, those that may be in a pool that could not be read. If the same pools could not be read as in
// the last run, an allocation that was listed then is in another pool, and so it is gone.
func (b *Builder) KeepOthers(listings []ipam.Listing, decided iter.Seq[*ipam.Allocation]) {
	statuses := make(map[string]ipam.Status)
	var unread []string
	for _, l := range listings {
		if statuses[l.Backend] = l.Status; l.Status == ipam.StatusPartial {
			for _, err := range l.Errors {
				what := err.Error()
				if pool, ok := errors.AsType[*ipam.PoolError](err); ok {
					what = pool.Pool
				}
				unread = append(unread, l.Backend, what)
			}
		}
	}
	known := make(map[ledgerKey]bool)
	var all []*ipam.Allocation
	for a := range decided {
		all = append(all, a)
		if a.Unreadable != "" && statuses[a.Backend] == ipam.StatusOK || a.Unreadable != "" && statuses[a.Backend] == ipam.StatusPartial {
			statuses[a.Backend] = ipam.StatusPartial
			unread = append(unread, a.Backend, a.Pool, a.Key)
		}
	}
	if len(unread) > 0 {
		b.made.unread = b.made.salt.hash(unread...)
	}
	for _, a := range all {
		if statuses[a.Backend] != ipam.StatusOK {
			b.made.salt.addKeys(known, a)
		}
	}
	stay := func(known map[ledgerKey]bool) func(hash uint64, names []string) (staying []string) {
		return func(hash uint64, names []string) (staying []string) {
			gone := b.made.unread == b.before.unread && !slices.Contains(names, unseen)
			for _, name := range names {
				status, listed := statuses[name]
				switch {
				case name == unseen, name == ofARestore, known[ledgerKey{name, hash}]:
				case listed && status == ipam.StatusOK, listed && status == ipam.StatusPartial && gone:
				default:
					staying = append(staying, name, unseen)
				}
			}
			return staying
		}
	}
	others := b.before.restrict(stay(known))
	others.nodes = b.before.nodes.restrict(stay(nil))
	b.addTimes(others)
	b.kept = append(b.kept, others.nodes...)
}

// KeepHolds adds the restores of the ledger before that began after the given time, and whose
// allocations are not listed: a restore writes into the ledger what it is about to put back. While
// there are restores that began after the time, it also adds where restores say that pods were.
func (b *Builder) KeepHolds(since time.Time, listed iter.Seq[*ipam.Allocation]) {
	missing := make(map[uint64]tableEntry[int64])
	for _, e := range b.before.restored {
		if ofSecond(e.value).After(since) {
			missing[e.hash] = e
		}
	}
	if len(missing) == 0 { // a hash costs time
		return
	}
	for _, e := range b.before.nodes {
		if strings.Contains(e.stores.Value(), ofARestore) { // what is listed may be from before the release
			b.kept.add(ofARestore, e.hash, e.value)
		}
	}
	for a := range listed {
		delete(missing, b.made.salt.spotHash(a))
	}
	for _, e := range missing {
		b.made.restored = append(b.made.restored, e)
	}
}

// Ledger returns the ledger. Nothing can be added after it.
func (b *Builder) Ledger() Ledger {
	l := b.made
	l.seen, l.restored = l.seen.arranged(), l.restored.arranged()
	l.graces, l.nodes = l.graces.arranged(), l.nodes.arranged()
	for i, e := range b.kept {
		if place, known := l.nodes.find(e.hash); known {
			b.kept[i].value = place
		}
	}
	l.nodes = append(l.nodes, b.kept...).arranged()
	return l
}

// addAll adds all entries of a ledger.
func (b *Builder) addAll(l Ledger) {
	b.addTimes(l)
	b.made.nodes = append(b.made.nodes, l.nodes...)
}

// addTimes adds all entries of a ledger but the places.
func (b *Builder) addTimes(l Ledger) {
	b.made.seen, b.made.restored = append(b.made.seen, l.seen...), append(b.made.restored, l.restored...)
	b.made.graces = append(b.made.graces, l.graces...)
}
