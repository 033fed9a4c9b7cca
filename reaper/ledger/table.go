package ledger

import (
	"cmp"
	"slices"
)

// A ledgerTable has values by key, in ascending order of the keys. Each key is there once. A
// table that is part of a Ledger never changes.
type ledgerTable[V cmp.Ordered] []tableEntry[V]

// A tableEntry is a key with its value.
type tableEntry[V cmp.Ordered] struct {
	key   ledgerKey
	value V
}

// find returns the value of a key.
func (t ledgerTable[V]) find(k ledgerKey) (value V, ok bool) {
	i, ok := slices.BinarySearchFunc(t, k, func(e tableEntry[V], k ledgerKey) int { return e.key.compare(k) })
	if !ok {
		return value, false
	}
	return t[i].value, true
}

// has reports whether there is a value for a key.
func (t ledgerTable[V]) has(k ledgerKey) bool {
	_, ok := t.find(k)
	return ok
}

// keys yields the keys.
func (t ledgerTable[V]) keys(yield func(ledgerKey) bool) {
	for _, e := range t {
		if !yield(e.key) {
			return
		}
	}
}

// add appends an entry. The table is not valid until arranged returns it.
func (t *ledgerTable[V]) add(k ledgerKey, value V) { *t = append(*t, tableEntry[V]{k, value}) }

// arranged puts the entries that were added in order. Of several values of a key, it
// keeps the largest.
func (t ledgerTable[V]) arranged() ledgerTable[V] {
	order := func(a, b tableEntry[V]) int { return cmp.Or(a.key.compare(b.key), cmp.Compare(b.value, a.value)) }
	slices.SortFunc(t, order)
	return slices.CompactFunc(t, func(a, b tableEntry[V]) bool { return a.key == b.key })
}

// filter returns the entries whose keys satisfy a condition: the table itself if all do.
func (t ledgerTable[V]) filter(keep func(ledgerKey) bool) ledgerTable[V] {
	n := 0
	for _, e := range t {
		if keep(e.key) {
			n++
		}
	}
	if n == len(t) {
		return t
	}
	kept := make(ledgerTable[V], 0, n)
	for _, e := range t {
		if keep(e.key) {
			kept = append(kept, e)
		}
	}
	return kept
}

// ledgerKeys are keys whose value is 0.
type ledgerKeys = ledgerTable[int32]
