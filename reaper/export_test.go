package reaper

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"
)

// Waiting returns how many allocations wait for their grace period.
func (l Ledger) Waiting() int { return len(l.seen) }

// Completed returns the allocation with what the rules knew of it.
func (d Decision) Completed() Allocation { return *d.completed() }

// Text returns version 1 of the stored form, which tests can read and write.
func (l Ledger) Text() []byte {
	id := func(k ledgerKey) string {
		return base64.RawURLEncoding.EncodeToString(slices.Concat(k[hashSize:], k[:hashSize]))
	}
	file := ledgerFile1{
		Version: 1, Seen: make(map[string]int64), Nodes: make(map[string][]string),
		Graces: make(map[string]int64), Restored: make(map[string]int64), Figures: l.figures, Doubt: l.doubt,
	}
	for _, e := range l.seen {
		file.Seen[id(e.key)] = e.value
	}
	for _, e := range l.restored {
		file.Restored[id(e.key)] = e.value
	}
	for _, e := range l.graces {
		file.Graces[id(e.key)] = int64(e.value)
	}
	for _, e := range l.nodes {
		file.Nodes[l.names[e.value]] = append(file.Nodes[l.names[e.value]], id(e.key))
	}
	for _, ids := range file.Nodes {
		slices.Sort(ids)
	}
	text, err := json.Marshal(file)
	if err != nil {
		panic(err)
	}
	return text
}

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
