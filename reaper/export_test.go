package reaper

import "time"

// Waiting returns how many allocations wait for their grace period.
func (l Ledger) Waiting() int { return len(l.seen) }

// AgeOf returns how old a look is.
func AgeOf(looked, now time.Time) time.Duration { return ageOf(looked, now) }
