package ledger

import (
	"iter"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A Builder makes the ledger that follows another one, from entries in any order. Of
// several values for one key, the largest counts. Its methods are for one goroutine.
type Builder struct {
	before  Ledger
	made    Ledger
	indices map[string]uint32 // in names, which are in the order of their addition
}

// NewBuilder returns a builder with the salt, the figures and the doubt of the ledger
// before, and with room for as many entries as that has.
func NewBuilder(before Ledger) *Builder {
	return &Builder{before: before, indices: make(map[string]uint32), made: Ledger{
		Figures: before.Figures, Doubt: before.Doubt, salt: before.salt,
		seen: make(ledgerTable[int64], 0, len(before.seen)), restored: make(ledgerTable[int64], 0, len(before.restored)),
		nodes: make(ledgerTable[uint32], 0, len(before.nodes)), graces: make(ledgerTable[int32], 0, len(before.graces)),
	}}
}

// Believe makes the figures those of a census that is believed.
func (b *Builder) Believe(f census.Figures) { b.made.Figures, b.made.Doubt = f, Doubt{} }

// Seen adds since when the allocation has been ownerless: while its pod was present, or after
// it was gone.
func (b *Builder) Seen(a *ipam.Allocation, present bool, since time.Time) {
	b.made.seen.add(b.made.salt.seenKey(a, present), ToSecond(since).Unix())
}

// KeepSeen adds what the ledger before says of that, if it knows it.
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
		b.addNode(b.made.salt.idKey(a), p.String())
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

// KeepOthers adds all that the ledger before has of the backends that were not listed
// completely, but for these allocations, which were listed and decided.
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

// Ledger returns the ledger. Nothing can be added after it.
func (b *Builder) Ledger() Ledger {
	l := b.made
	slices.Sort(l.names)
	ranks := make([]uint32, len(l.names))
	for rank, name := range l.names {
		ranks[b.indices[name]] = uint32(rank)
	}
	for i := range l.nodes {
		l.nodes[i].value = ranks[l.nodes[i].value]
	}
	l.seen, l.restored = l.seen.arranged(), l.restored.arranged()
	l.graces, l.nodes = l.graces.arranged(), l.nodes.arranged()
	return l
}

// addNode adds the node on which a pod was last seen.
func (b *Builder) addNode(k ledgerKey, name string) {
	i, known := b.indices[name]
	if !known {
		i = uint32(len(b.made.names))
		b.made.names = append(b.made.names, name)
		b.indices[name] = i
	}
	b.made.nodes.add(k, i)
}

// addAll adds all entries of a ledger.
func (b *Builder) addAll(l Ledger) {
	b.made.seen, b.made.restored = append(b.made.seen, l.seen...), append(b.made.restored, l.restored...)
	b.made.graces = append(b.made.graces, l.graces...)
	for _, e := range l.nodes {
		b.addNode(e.key, l.names[e.value])
	}
}
