package ledger

import (
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
type Builder struct{ before, made Ledger }

// NewBuilder returns a builder with the salt, the figures, the doubt, the runs, the totals, the
// uses, the stores and the meanings of the ledger before.
func NewBuilder(before Ledger) *Builder {
	return &Builder{before: before, made: Ledger{
		Figures: before.Figures, Doubt: before.Doubt, Runs: before.Runs, Totals: before.Totals, Uses: before.Uses, Stores: before.Stores, Meanings: before.Meanings,
		salt: before.salt,
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

// Mean sets what stores mean by names of nodes.
func (b *Builder) Mean(all []Meaning) { b.made.Meanings = all }

// Seen adds since when the allocation has been ownerless: while its pod was present, or after
// it was gone.
func (b *Builder) Seen(a *ipam.Allocation, present bool, since time.Time) {
	b.made.seen.add(b.made.salt.seenKey(a, present), ToSecond(since).Unix())
}

// KeepSeen adds that time from the ledger before, if it has one that is not from before a restore.
func (b *Builder) KeepSeen(a *ipam.Allocation, present bool) {
	if len(b.before.seen) == 0 { // a key costs time
		return
	}
	k := b.made.salt.seenKey(a, present)
	if at, known := b.before.seen.find(k); known && !ofSecond(at).Before(b.before.RestoredAt(a)) {
		b.made.seen.add(k, at)
	}
}

// Place adds where the pod of the allocation was last seen. It adds nothing for the zero Place.
func (b *Builder) Place(a *ipam.Allocation, p Place) {
	if p != (Place{}) {
		b.made.nodes.add(b.made.salt.idKey(a), p.String())
	}
}

// Grace adds how long the pod of the allocation may take to end. It adds nothing for 0, the
// default.
func (b *Builder) Grace(a *ipam.Allocation, grace time.Duration) {
	if grace > 0 {
		b.made.graces.add(b.made.salt.placeKey(a), int32((grace+time.Second-1)/time.Second))
	}
}

// Restored adds when a restore put the allocation back. It adds nothing for the zero time.
func (b *Builder) Restored(a *ipam.Allocation, at time.Time) {
	if !at.IsZero() {
		b.made.restored.add(b.made.salt.spotKey(a), ToSecond(at).Unix())
	}
}

// KeepOthers adds what the ledger before has about allocations other than the decided ones, if they
// may still exist: all of a store that was not listed, nothing of one that was listed completely.
// Of a store that was listed in part, an allocation that was not found may be in a pool that could
// not be read. If the same pools could not be read before, that is so only if it was not found then
// either: so a pool that stays unreadable does not make the ledger grow.
func (b *Builder) KeepOthers(listings []ipam.Listing, decided iter.Seq[*ipam.Allocation]) {
	whole, partial := make(map[backendTag]bool), make(map[backendTag]bool)
	again := make(map[backendTag]bool) // partial, without the same pools as before
	for _, l := range listings {
		tag := tagOf(l.Backend)
		switch {
		case l.Whole:
			whole[tag] = true
		case l.Status == ipam.StatusPartial:
			unread := b.made.salt.unreadKey(l)
			partial[tag], again[tag] = true, b.before.unread.has(unread)
			b.made.unread.add(unread, 0)
		}
	}
	known := make(map[ledgerKey]bool)
	for a := range decided {
		if !whole[tagOf(a.Backend)] {
			b.made.salt.addKeys(known, a)
		}
	}
	kept := b.before.only(func(k ledgerKey) bool {
		return !whole[k.tag] && !known[k] && (!again[k.tag] || b.before.unlisted.has(k))
	})
	kept.unread = kept.unread.filter(func(k ledgerKey) bool { return !whole[k.tag] && !partial[k.tag] })
	for k := range kept.keys() {
		if partial[k.tag] {
			b.made.unlisted.add(k, 0)
		}
	}
	b.addAll(kept)
}

// KeepHolds adds the restores of the ledger before that began after the given time, and whose
// allocations are not listed: a restore writes into the ledger what it is about to put back. While
// there are restores that began after the time, it also adds where restores say that pods were.
func (b *Builder) KeepHolds(since time.Time, listed iter.Seq[*ipam.Allocation]) {
	missing := make(map[ledgerKey]int64)
	for _, e := range b.before.restored {
		if ofSecond(e.value).After(since) {
			missing[e.key] = e.value
		}
	}
	if len(missing) == 0 { // a key costs time
		return
	}
	for _, e := range b.before.nodes {
		if strings.HasSuffix(e.value, ofRestore) { // what is listed may be from before the release
			b.made.nodes.add(e.key, e.value)
		}
	}
	for a := range listed {
		delete(missing, b.made.salt.spotKey(a))
	}
	for k, at := range missing {
		b.made.restored.add(k, at)
	}
}

// Ledger returns the ledger. Nothing can be added after it.
func (b *Builder) Ledger() Ledger {
	l := b.made
	l.seen, l.restored = l.seen.arranged(), l.restored.arranged()
	l.graces, l.nodes = l.graces.arranged(), l.nodes.arranged()
	l.unlisted, l.unread = l.unlisted.arranged(), l.unread.arranged()
	return l
}

// addAll adds all entries of a ledger.
func (b *Builder) addAll(l Ledger) {
	b.made.seen, b.made.restored = append(b.made.seen, l.seen...), append(b.made.restored, l.restored...)
	b.made.graces, b.made.nodes = append(b.made.graces, l.graces...), append(b.made.nodes, l.nodes...)
	b.made.unlisted, b.made.unread = append(b.made.unlisted, l.unlisted...), append(b.made.unread, l.unread...)
}
