package reaper

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"maps"
	"time"
)

// A Ledger is what a program that runs every few minutes has for a memory:
//
//   - since when allocations have been ownerless without a break;
//   - on which nodes the pods were last seen of those whose store does not say;
//   - how many pods and nodes the last run found.
//
// A lost or damaged ledger restarts grace periods, and protects no more against a
// node that is cut off or a census that lost half of its pods. The zero Ledger is
// empty; a Ledger is a value and never changes.
type Ledger struct {
	seen    map[string]time.Time
	nodes   map[string]string // by identity of place and pod
	figures figures
}

// figures are what a census found; zero for what was not asked for.
type figures struct {
	Pods  int `json:"pods,omitempty"`
	Nodes int `json:"nodes,omitempty"`
}

// Ledgers keeps the ledger between runs.
type Ledgers interface {
	// Load returns the stored ledger; an empty one where there is none. An
	// error that wraps ErrLedgerDamaged comes with what could be saved of it.
	Load(ctx context.Context) (Ledger, error)

	// Save replaces what Load returned. It returns an error that wraps
	// ErrAgain when somebody else wrote in between.
	Save(ctx context.Context, l Ledger) error
}

// ErrLedgerDamaged says that a stored ledger, or a part of it, could not be
// understood. What it remembered counts as first seen now.
var ErrLedgerDamaged = errors.New("the ledger is damaged")

// since returns when the identity was first seen ownerless: now where the
// ledger does not know it, or claims a time to come.
func (l Ledger) since(id string, now time.Time) time.Time {
	if at, ok := l.seen[hash(id)]; ok && at.Before(now) {
		return at
	}
	return now
}

// node returns where the pod of the entry was last seen; empty where that is not
// known.
func (l Ledger) node(r Allocation) string { return l.nodes[hash(r.place())] }

// next returns the ledger that the verdicts call for: what is ownerless now and
// has to wait, where the others' pods are, the census's figures, and nothing else.
// Times are rounded up to the second of the stored form, so that no grace period
// is cut short.
func (l Ledger) next(decisions []Decision, c Census, complete bool) Ledger {
	n := Ledger{seen: make(map[string]time.Time), nodes: make(map[string]string), figures: c.figures()}
	for id, node := range l.nodes {
		if _, exists := c.nodes[node]; !complete && (exists || c.nodes == nil) {
			n.nodes[id] = node // of an entry that could not be listed
		}
	}
	for _, v := range decisions {
		if v.remember {
			n.seen[hash(v.Allocation.id())] = v.FirstSeen.Add(time.Second - 1).Truncate(time.Second)
		}
		if v.node != "" {
			n.nodes[hash(v.Allocation.place())] = v.node
		}
	}
	return n
}

// Equal reports whether both remember the same.
func (l Ledger) Equal(other Ledger) bool {
	return maps.EqualFunc(l.seen, other.seen, time.Time.Equal) &&
		maps.Equal(l.nodes, other.nodes) && l.figures == other.figures
}

// Len returns how many things it remembers of allocations.
func (l Ledger) Len() int { return len(l.seen) + len(l.nodes) }

// Waiting returns how many allocations wait for their grace period.
func (l Ledger) Waiting() int { return len(l.seen) }

// WithoutNodes returns the ledger without what it remembers of nodes.
func (l Ledger) WithoutNodes() Ledger {
	l.nodes = nil
	return l
}

// Shards splits the ledger into the fewest parts of at most size entries. There
// is always at least one. The first has the figures.
func (l Ledger) Shards(size int) []Ledger {
	part := func() Ledger { return Ledger{seen: make(map[string]time.Time), nodes: make(map[string]string)} }
	shards := []Ledger{part()}
	shards[0].figures = l.figures
	room := func() Ledger {
		if last := shards[len(shards)-1]; last.Len() < size {
			return last
		}
		shards = append(shards, part())
		return shards[len(shards)-1]
	}
	for id, at := range l.seen {
		room().seen[id] = at
	}
	for id, node := range l.nodes {
		room().nodes[id] = node
	}
	return shards
}

// Merge returns what both remember; where both do, the later time and the larger
// figure count.
func (l Ledger) Merge(other Ledger) Ledger {
	merged := Ledger{
		seen: make(map[string]time.Time), nodes: make(map[string]string),
		figures: figures{max(l.figures.Pods, other.figures.Pods), max(l.figures.Nodes, other.figures.Nodes)},
	}
	maps.Copy(merged.nodes, l.nodes)
	maps.Copy(merged.nodes, other.nodes)
	maps.Copy(merged.seen, l.seen)
	for id, at := range other.seen {
		if have, ok := merged.seen[id]; !ok || at.After(have) {
			merged.seen[id] = at
		}
	}
	return merged
}

// hash shortens an identity: tokens can be as large as the entry itself. 128
// bits keep two entries of one cluster apart.
func hash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
