package reaper

import (
	"slices"
	"time"
)

// Fit returns the ledger without what does not fit into so many bytes, and how much that is.
func (l Ledger) Fit(capacity int) (Ledger, int) { return l.fit(capacity) }

// Waiting returns how many allocations wait for their grace period.
func (l Ledger) Waiting() int { return len(l.seen) }

// Completed returns the allocation with what the rules knew of it.
func (d Decision) Completed() Allocation { return *d.completed() }

// OnNode returns the census with these sandboxes of a node, as a Runtime lists them.
func (c Census) OnNode(ids ...string) Census {
	slices.Sort(ids)
	c.sandboxes = sandboxList{true, ids}
	return c
}

// AgeOf returns how old a look is.
func AgeOf(looked, now time.Time) time.Duration { return ageOf(looked, now) }

// Looked returns when the look of the warrant began.
func (w Warrant) Looked() time.Time { return w.confirmed }

// LookedAt returns the warrant as if its look had begun at another time.
func (w Warrant) LookedAt(began time.Time) Warrant {
	w.confirmed = began
	return w
}
