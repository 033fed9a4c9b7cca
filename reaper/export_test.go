package reaper

// Waiting returns how many allocations wait for their grace period.
func (l Ledger) Waiting() int { return len(l.seen) }

// After returns the census after changes of pods.
func (c Census) After(changes ...PodChange) Census {
	c.population = c.following()
	c.Apply(changes...)
	return c
}

// Apply applies more changes to a census of After.
func (c *Census) Apply(changes ...PodChange) {
	for _, change := range changes {
		c.apply(change.Ref, change.Pod)
	}
}
