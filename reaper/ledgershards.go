package reaper

import (
	"cmp"
	"slices"
)

// LedgerShards is the number of shards of a large ledger. A shard is stored as a whole.
const LedgerShards = 32

// MaxLedgerShard is the largest stored form of a shard, in bytes. An API server accepts
// objects of 1 MiB, so that a shard fits even if gzip does not make it smaller.
const MaxLedgerShard = 1000 << 10

// Shards splits the ledger into shards, by the hashes of its keys: an entry is always in
// the same one. The first shard has the figures. The number of shards is 1 or
// LedgerShards.
func (l Ledger) Shards(number int) []Ledger {
	shards := make([]Ledger, number)
	for n := range shards {
		shards[n] = Ledger{
			seen: l.seen.shard(n, number), nodes: l.nodes.shard(n, number),
			graces: l.graces.shard(n, number), restored: l.restored.shard(n, number), names: l.names,
		}
	}
	shards[0].figures, shards[0].doubt = l.figures, l.doubt
	return shards
}

// IsShard reports whether Shards may return the ledger as the nth of its shards, from 0.
func (l Ledger) IsShard(n, number int) bool {
	return l.seen.isIn(n, number) && l.nodes.isIn(n, number) && l.graces.isIn(n, number) && l.restored.isIn(n, number)
}

// fit returns the ledger with a Len of at most size, of whose shards none is larger than
// MaxLedgerShard, and how many entries it left out. Restored allocations are kept first.
// Then follow the times, the oldest first: their allocations go first, and make room. The
// nodes come last, after the graces. An allocation whose node was forgotten is held while
// any node is unreachable.
func (l Ledger) fit(size int) (Ledger, int) {
	fitting := l
	if l.Len() > size {
		fitting = l.cut(size, l.maxEncoded())
	}
	if fitting.maxEncoded() > MaxLedgerShard {
		shards := fitting.Shards(LedgerShards)
		small := true
		for n, s := range shards {
			if s.maxEncoded() > MaxLedgerShard {
				shards[n], small = s.cut(size, MaxLedgerShard), false
			}
		}
		if !small {
			fitting = Ledger{}.Merge(shards...)
		}
	}
	return fitting, l.Len() - fitting.Len()
}

// cut returns the ledger without the entries that make it longer than size, or its stored
// form larger than so many bytes.
func (l Ledger) cut(size, bytes int) Ledger {
	bytes -= headSize
	cutting := Ledger{names: l.names, figures: l.figures, doubt: l.doubt}
	room := func(each int) int { return max(0, min(size-cutting.Len(), bytes/each)) }
	cutting.restored = l.restored.first(room(secondSize), nil)
	bytes -= secondSize * len(cutting.restored)
	cutting.seen = l.seen.first(room(secondSize), cmp.Compare)
	bytes -= secondSize * len(cutting.seen)
	cutting.graces = l.graces.first(room(graceSize), nil)
	bytes -= graceSize * len(cutting.graces)
	named := make([]bool, len(l.names))
	for _, e := range l.nodes {
		cost := nodeSize
		if !named[e.value] {
			cost += nameSize + len(l.names[e.value])
		}
		if cutting.Len() == size || cost > bytes {
			break
		}
		bytes -= cost
		named[e.value] = true
		cutting.nodes = append(cutting.nodes, e)
	}
	return cutting
}

// first returns the first n entries by their values, and by their keys where the values
// are equal or there is nothing to compare them with.
func (t ledgerTable[V]) first(n int, compare func(a, b V) int) ledgerTable[V] {
	if len(t) <= n {
		return t
	}
	if compare == nil {
		return t[:n]
	}
	byValue := slices.Clone(t)
	slices.SortStableFunc(byValue, func(a, b tableEntry[V]) int { return compare(a.value, b.value) })
	return byValue[:n].arranged()
}
