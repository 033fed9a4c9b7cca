package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ErrFull says that a store has no room for what a ledger must have.
var ErrFull = errors.New("the ledger is full")

// Fit returns the ledger without the entries for which a stored form of this capacity in bytes
// has no room, and how many these are. It never leaves out where pods hang or are mirrors, and what a
// restore put back: without these, an address may be released too early. If there is no room for
// them, the error wraps ErrFull. Then follow the times, the oldest first: their allocations go first,
// and make room. The other nodes come last, after the graces. An allocation whose node was forgotten
// is held while any node is unreachable.
func (l Ledger) Fit(capacity int) (Ledger, int, error) {
	size := len(l.Encode())
	if size <= capacity {
		return l, 0, nil
	}
	byAge := slices.Clone(l.seen)
	slices.SortStableFunc(byAge, func(a, b tableEntry[int64]) int { return cmp.Compare(a.value, b.value) })
	isHung := func(e tableEntry[string]) bool { return placeOf(e.value).Boot != "" }
	hung := slices.DeleteFunc(slices.Clone(l.nodes), func(e tableEntry[string]) bool { return !isHung(e) })
	nodes := slices.DeleteFunc(slices.Clone(l.nodes), isHung)
	first := func(n int) Ledger {
		fitting := l
		fitting.seen, n = take(byAge, n)
		fitting.graces, n = take(l.graces, n)
		others, _ := take(nodes, n)
		fitting.nodes = slices.Concat(hung, others).arranged()
		fitting.seen = slices.Clone(fitting.seen).arranged()
		return fitting
	}
	// Entries take about the same room, and each try copies most of the ledger: a few tries in
	// proportion do, where a search for the exact number takes one for each of its bits.
	must := len(hung) + len(l.restored)
	fitting, n := l, l.Len()
	for n > must && size > capacity {
		n = max(must, min(n-1, n*capacity/size))
		fitting = first(n - must)
		size = len(fitting.Encode())
	}
	if size > capacity {
		return l, 0, fmt.Errorf("%w: where %d pods hang or were mirrors and %d allocations that were restored would take %d bytes, and it has room for %d",
			ErrFull, len(hung), len(l.restored), size, capacity)
	}
	return fitting, l.Len() - n, nil
}

// take returns the first n entries of a table, and how much of n is left.
func take[V cmp.Ordered](t ledgerTable[V], n int) (ledgerTable[V], int) {
	taken := min(len(t), n)
	return t[:taken], n - taken
}
