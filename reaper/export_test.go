package reaper

// Waiting returns how many allocations wait for their grace period.
func (l Ledger) Waiting() int { return len(l.seen) }

// After returns the census after changes of pods.
func (c Census) After(changes ...PodChange) Census {
	c.population = c.following()
	for _, change := range changes {
		c.apply(change.Ref, change.Pod)
	}
	return c
}
