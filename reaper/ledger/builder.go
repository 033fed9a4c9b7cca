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
	b.made.seen.add(b.made.salt.seenKey(a, present), ToSecond(since).Unix())
}

// KeepSeen adds that time from the ledger before, if it has one.
func (b *Builder) KeepSeen(a *ipam.Allocation, present bool) {
	if len(b.before.seen) == 0 { // a key costs time
		return
	}
	k := b.made.salt.seenKey(a, present)
	if at, known := b.before.seen.find(k); known {
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

// KeepOthers adds all that the ledger before has for backends that were not listed
// completely, except for these allocations, which were listed and decided.
func (b *Builder) KeepOthers(listed []string, decided iter.Seq[*ipam.Allocation]) {
	tags := make(map[backendTag]bool, len(listed))
	for _, backend := range listed {
		tags[tagOf(backend)] = true
	}
	known := make(map[ledgerKey]bool)
	for a := range decided {
		if !tags[tagOf(a.Backend)] {
			b.made.salt.addKeys(known, a)
		}
	}
	b.addAll(b.before.only(func(k ledgerKey) bool { return !tags[k.tag] && !known[k] }))
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
	return l
}

// addAll adds all entries of a ledger.
func (b *Builder) addAll(l Ledger) {
	b.made.seen, b.made.restored = append(b.made.seen, l.seen...), append(b.made.restored, l.restored...)
	b.made.graces, b.made.nodes = append(b.made.graces, l.graces...), append(b.made.nodes, l.nodes...)
}
