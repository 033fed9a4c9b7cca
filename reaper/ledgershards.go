package reaper

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Shards splits the ledger into the fewest parts with a Len of at most size. There is
// always at least one part. The first one has the figures.
func (l Ledger) Shards(size int) []Ledger {
	first := newLedger()
	first.figures, first.doubt = l.figures, l.doubt
	shards := []Ledger{first}
	room := func() Ledger {
		if last := shards[len(shards)-1]; last.Len() < size {
			return last
		}
		shards = append(shards, newLedger())
		return shards[len(shards)-1]
	}
	for id, at := range l.seen {
		room().seen[id] = at
	}
	for id, node := range l.nodes {
		room().nodes[id] = node
	}
	for id, grace := range l.graces {
		room().graces[id] = grace
	}
	for id, at := range l.restored {
		room().restored[id] = at
	}
	return shards
}

// fit returns the ledger with a Len of at most size, and how many entries it left out.
// Restored allocations are kept first. Then follow the times, the oldest first: their
// allocations go first, and make room. The nodes come last, after the graces. An
// allocation whose node was forgotten is held while any node is unreachable.
func (l Ledger) fit(size int) (Ledger, int) {
	excess := l.Len() - size
	if excess <= 0 {
		return l, 0
	}
	fitting := newLedger()
	fitting.figures, fitting.doubt = l.figures, l.doubt
	room := size
	take(&room, fitting.restored, l.restored, nil)
	take(&room, fitting.seen, l.seen, time.Time.Compare)
	take(&room, fitting.graces, l.graces, nil)
	take(&room, fitting.nodes, l.nodes, nil)
	return fitting, excess
}

// take copies as many entries as there is room for: the smallest values first, and
// equal values in the order of their keys.
func take[V any](room *int, into, from map[string]V, compare func(a, b V) int) {
	if len(from) <= *room {
		maps.Copy(into, from)
		*room -= len(from)
		return
	}
	ids := slices.SortedFunc(maps.Keys(from), func(a, b string) int {
		if compare == nil {
			return cmp.Compare(a, b)
		}
		return cmp.Or(compare(from[a], from[b]), cmp.Compare(a, b))
	})
	for _, id := range ids[:*room] {
		into[id] = from[id]
	}
	*room = 0
}
