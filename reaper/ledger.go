package reaper

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/sethvargo/go-retry"
)

// A Ledger is the memory from run to run:
//
//   - since when allocations have been ownerless without a break;
//   - on which node a pod was last seen, if its store does not name the node;
//   - how many pods and nodes the last run found.
//
// After the loss of a ledger, grace periods begin again. The next run cannot notice
// that a node was cut off before, or that half of the pods vanished. The zero Ledger is
// empty. A Ledger is a value and never changes.
type Ledger struct {
	seen    map[string]time.Time // by hash of Allocation.id
	nodes   map[string]string    // by hash of Allocation.place
	figures figures
}

// figures are the numbers of pods and nodes of a census; 0 for a list that was not read.
type figures struct {
	Pods  int `json:"pods,omitempty"`
	Nodes int `json:"nodes,omitempty"`
}

// Ledgers stores the ledger between runs.
type Ledgers interface {
	// Load returns the stored ledger, or an empty one if none is stored. With an
	// error that wraps ErrLedgerDamaged, it returns the parts that could be decoded.
	Load(ctx context.Context) (Ledger, error)

	// Save replaces the ledger that Load returned. The error wraps ErrAgain if
	// another client wrote since then.
	Save(ctx context.Context, l Ledger) error
}

// ErrLedgerDamaged says that a stored ledger, or a part of it, could not be decoded.
// The allocations of that part count as first seen now.
var ErrLedgerDamaged = errors.New("the ledger is damaged")

// since returns when the allocation with this identity was first seen ownerless. That is
// now if the ledger does not know it, or has a time in the future.
func (l Ledger) since(id string, now time.Time) time.Time {
	if at, ok := l.seen[hash(id)]; ok && at.Before(now) {
		return at
	}
	return now
}

// node returns the node on which the pod of the allocation was last seen; empty if that
// is not known.
func (l Ledger) node(a Allocation) string { return l.nodes[hash(a.place())] }

// next returns the ledger after these decisions. It has the allocations that are
// ownerless and wait, the nodes of the pods of the others, and the figures of the
// census, and nothing else. If the inventory is not complete, the nodes of pods whose
// allocations were not listed stay.
//
// Times are rounded up to the second of the stored form, so no grace period is cut
// short.
func (l Ledger) next(decisions []Decision, c Census, complete bool) Ledger {
	n := Ledger{seen: make(map[string]time.Time), nodes: make(map[string]string), figures: c.figures()}
	for id, node := range l.nodes {
		if _, exists := c.nodes[node]; !complete && (exists || c.nodes == nil) {
			n.nodes[id] = node // its allocation may not have been listed
		}
	}
	for _, d := range decisions {
		if d.remember {
			n.seen[hash(d.Allocation.id())] = d.FirstSeen.Add(time.Second - 1).Truncate(time.Second)
		}
		if d.node != "" {
			n.nodes[hash(d.Allocation.place())] = d.node
		}
	}
	return n
}

// Equal reports whether both remember the same.
func (l Ledger) Equal(other Ledger) bool {
	return maps.EqualFunc(l.seen, other.seen, time.Time.Equal) &&
		maps.Equal(l.nodes, other.nodes) && l.figures == other.figures
}

// Len returns the number of times and nodes that it has.
func (l Ledger) Len() int { return len(l.seen) + len(l.nodes) }

// Waiting returns how many allocations wait for their grace period.
func (l Ledger) Waiting() int { return len(l.seen) }

// WithoutNodes returns the ledger without the nodes of pods.
func (l Ledger) WithoutNodes() Ledger {
	l.nodes = nil
	return l
}

// Shards splits the ledger into the fewest parts with a Len of at most size. There is
// always at least one part. The first one has the figures.
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

// Merge returns a ledger with all that either of two ledgers has. If both have an
// allocation, the later time counts. The larger figures count.
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

// hash shortens an identity, because a token can be as large as the stored allocation.
// 128 bits keep two allocations of one cluster apart.
func hash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

// loadLedger loads the ledger of earlier runs. It reports false if the stored ledger
// could not be read. Then it may be whole, and must not be replaced.
func (r *run) loadLedger(ctx context.Context) (Ledger, bool) {
	ledger, err := r.Ledgers.Load(ctx)
	switch {
	case errors.Is(err, ErrLedgerDamaged):
		r.warn(err.Error() + "; the allocations of the damaged part count as first seen now")
	case err != nil:
		r.failAndWarn(fmt.Errorf("load the ledger: %w", err))
		return Ledger{}, false
	}
	return ledger, true
}

// saveLedger saves the next ledger. If another run wrote in between, it loads the ledger
// of that run and decides again by it.
func (r *run) saveLedger(ctx context.Context, have Ledger, decisions []Decision,
	next func(Ledger, []Decision) Ledger, judge func(Ledger) []Decision,
) {
	b := retry.WithMaxRetries(3, retry.NewConstant(100*time.Millisecond))
	err := retry.Do(ctx, b, func(ctx context.Context) error {
		want := next(have, decisions)
		if want.Equal(have) {
			return nil
		}
		err := r.Ledgers.Save(ctx, want)
		if !errors.Is(err, ErrAgain) {
			return err
		}
		theirs, loadErr := r.Ledgers.Load(ctx)
		if loadErr != nil && !errors.Is(loadErr, ErrLedgerDamaged) {
			return loadErr
		}
		if have = theirs; have.Len() > 0 {
			decisions = judge(have)
		}
		return retry.RetryableError(err)
	})
	if err != nil {
		r.failAndWarn(fmt.Errorf("save the ledger: %w", err))
	}
}
