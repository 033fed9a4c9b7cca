package reaper

import "time"

// Waiting returns how many allocations wait for their grace period.
func (l Ledger) Waiting() int { return len(l.seen) }

// AgeOf returns how old a look is.
func AgeOf(looked, now time.Time) time.Duration { return ageOf(looked, now) }

// Looked returns when the look of the warrant began.
func (w Warrant) Looked() time.Time { return w.confirmed }

// LookedAt returns the warrant as if its look had begun at another time.
func (w Warrant) LookedAt(began time.Time) Warrant {
	w.confirmed = began
	return w
}
