package ledger

import (
	"cmp"
	"slices"
	"strings"
	"unique"
)

// A ledgerTable has values by hash, in ascending order of the hashes. Each hash is there once. A
// table that is part of a Ledger never changes.
type ledgerTable[V cmp.Ordered] []tableEntry[V]

// A tableEntry is a hash with its value, and the stores whose allocations it is about.
type tableEntry[V cmp.Ordered] struct {
	hash   uint64
	stores storeSet
	value  V
}

// A storeSet has the names of backends, and perhaps marks, in order and separated by commas. Almost
// all entries of a ledger have one of a few sets.
type storeSet = unique.Handle[string]

// The marks of an entry.
const (
	unseen     = "(unseen)"   // the last run listed no allocation that it is about
	ofARestore = "(restored)" // a restore added it
)

// storesOf returns the set of these names.
func storesOf(names ...string) storeSet {
	slices.Sort(names)
	return unique.Make(strings.Join(slices.Compact(names), ","))
}

// namesOf returns the names of a set.
func namesOf(s storeSet) []string { return strings.Split(s.Value(), ",") }

// find returns the value of a hash.
func (t ledgerTable[V]) find(hash uint64) (value V, ok bool) {
	i, ok := slices.BinarySearchFunc(t, hash, func(e tableEntry[V], hash uint64) int { return cmp.Compare(e.hash, hash) })
	if !ok {
		return value, false
	}
	return t[i].value, true
}

// add appends an entry of one store. The table is not valid until arranged returns it.
func (t *ledgerTable[V]) add(backend string, hash uint64, value V) {
	*t = append(*t, tableEntry[V]{hash, unique.Make(backend), value})
}

// arranged puts the entries that were added in order. Of several values of a hash, it keeps the
// largest, for all of their stores.
func (t ledgerTable[V]) arranged() ledgerTable[V] {
	slices.SortFunc(t, func(a, b tableEntry[V]) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(b.value, a.value))
	})
	n := 0
	for _, e := range t {
		switch {
		case n == 0 || t[n-1].hash != e.hash:
			t[n] = e
			n++
		case t[n-1].stores != e.stores:
			t[n-1].stores = storesOf(append(namesOf(t[n-1].stores), namesOf(e.stores)...)...)
		}
	}
	return t[:n]
}

// restrict returns the entries for those of their stores and marks that stay. An entry about no store
// goes, unless a restore added it.
func (t ledgerTable[V]) restrict(stay func(hash uint64, names []string) []string) ledgerTable[V] {
	names := make(map[storeSet][]string)
	left := make(ledgerTable[V], 0, len(t))
	for _, e := range t {
		all, known := names[e.stores]
		if !known {
			all = namesOf(e.stores)
			names[e.stores] = all
		}
		staying := stay(e.hash, all)
		if len(staying) == 0 || slices.Equal(staying, []string{unseen}) {
			continue
		}
		if !slices.Equal(staying, all) {
			e.stores = storesOf(staying...)
		}
		left = append(left, e)
	}
	return left
}
