package reaper

// Waiting returns how many allocations wait for their grace period.
func (l Ledger) Waiting() int { return len(l.seen) }

// Completed returns the allocation with what the rules knew of it.
func (d Decision) Completed() Allocation { return *d.completed() }
