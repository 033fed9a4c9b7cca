package ledger

import (
	"cmp"
	"slices"
	"strings"
)

// Fit returns the ledger without the entries for which a stored form of this capacity in bytes
// has no room, and how many these are. A full ledger has no marks of what was not listed: then the next
// run keeps all that may be in a pool that it cannot read. Figures, stores, meanings, runs and totals stay, and uses go first.
//
// What is lost last is what keeps an address from being released too early: where pods hang or are
// mirrors, and where those were whose addresses a restore put back; then restores; then graces. Then
// follow the times, the oldest first: their allocations go first, and make room. The other nodes come
// last: an allocation whose node was forgotten is held while any node is unreachable.
func (l Ledger) Fit(capacity int) (Ledger, int) {
	size := len(l.Encode())
	if size <= capacity {
		return l, 0
	}
	l.unlisted, l.unread, l.Uses = nil, nil, nil
	size = len(l.Encode())
	byAge := slices.Clone(l.seen)
	slices.SortStableFunc(byAge, func(a, b tableEntry[int64]) int { return cmp.Compare(a.value, b.value) })
	isHung := func(e tableEntry[string]) bool {
		return placeOf(e.value).Boot != "" || strings.HasSuffix(e.value, ofRestore)
	}
	hung := slices.DeleteFunc(slices.Clone(l.nodes), func(e tableEntry[string]) bool { return !isHung(e) })
	nodes := slices.DeleteFunc(slices.Clone(l.nodes), isHung)
	first := func(n int) Ledger {
		fitting := l
		fitting.nodes, n = take(hung, n)
		fitting.restored, n = take(l.restored, n)
		fitting.graces, n = take(l.graces, n)
		fitting.seen, n = take(byAge, n)
		others, _ := take(nodes, n)
		fitting.nodes = slices.Concat(fitting.nodes, others).arranged()
		fitting.seen = slices.Clone(fitting.seen).arranged()
		return fitting
	}
	// Entries take about the same room, and each try copies most of the ledger: a few tries in
	// proportion do, where a search for the exact number takes one for each of its bits.
	fitting, n := l, l.Len()
	for n > 0 && size > capacity {
		n = min(n-1, n*capacity/size)
		fitting = first(n)
		size = len(fitting.Encode())
	}
	return fitting, l.Len() - n
}

// take returns the first n entries of a table, and how much of n is left.
func take[V cmp.Ordered](t ledgerTable[V], n int) (ledgerTable[V], int) {
	taken := min(len(t), n)
	return t[:taken], n - taken
}
