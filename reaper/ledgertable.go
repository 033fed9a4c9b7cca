package reaper

import (
	"cmp"
	"encoding/binary"
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
	i := t.from(k)
	if i == len(t) || t[i].key != k {
		return value, false
	}
	return t[i].value, true
}

// from returns the index of the first key that is not less than k. Keys are hashes, so
// the first bits of k tell about where that is. The search begins there, with steps that
// double.
func (t ledgerTable[V]) from(k ledgerKey) int {
	guess := int(uint64(binary.BigEndian.Uint32(k[:])) * uint64(len(t)) >> 32)
	low, high := guess, guess
	for step := 8; low > 0 && t[low].key.compare(k) >= 0; step *= 2 {
		low, high = max(0, low-step), low
	}
	for step := 8; high < len(t) && t[high].key.compare(k) < 0; step *= 2 {
		low, high = high, min(len(t), high+step)
	}
	n, _ := slices.BinarySearchFunc(t[low:high], k, func(e tableEntry[V], k ledgerKey) int { return e.key.compare(k) })
	return low + n
}

// shard returns the entries of one of so many shards. They stay those of the table.
func (t ledgerTable[V]) shard(n, shards int) ledgerTable[V] {
	bound := func(n int) int {
		i, _ := slices.BinarySearchFunc(t, n, func(e tableEntry[V], n int) int { return cmp.Compare(e.key.shard(shards), n) })
		return i
	}
	return slices.Clip(t[bound(n):bound(n+1)])
}

// isIn reports whether all keys are in one of so many shards.
func (t ledgerTable[V]) isIn(n, shards int) bool {
	return len(t) == 0 || t[0].key.shard(shards) == n && t[len(t)-1].key.shard(shards) == n
}

// add appends an entry. The table is no table until arranged returns it.
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
