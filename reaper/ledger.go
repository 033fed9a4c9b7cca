package reaper

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"maps"
	"time"
)

// A Ledger is the memory from run to run:
//
//   - since when allocations have been ownerless without a break;
//   - on which node a pod was last seen, if its store does not name the node;
//   - how long a pod may take to end, if that is longer than the default;
//   - when a restore put an allocation back;
//   - how many pods that were not finished, and how many nodes, the last run found.
//
// After the loss of a ledger, grace periods begin again. The next run then knows neither
// the nodes of pods nor that half of the pods vanished. The zero Ledger is empty. A
// Ledger is a value and never changes.
type Ledger struct {
	seen     map[string]time.Time     // by seenKey
	nodes    map[string]string        // by key of Allocation.id
	graces   map[string]time.Duration // by key of Allocation.place
	restored map[string]time.Time     // by key of Allocation.spot
	figures  figures
	doubt    doubt
}

// figures are the numbers of a census: of pods that are not finished, and of nodes. They
// are 0 for a list that was not read.
type figures struct {
	Pods  int `json:"pods,omitempty"`
	Nodes int `json:"nodes,omitempty"`
}

// A doubt has the figures of a census that runs did not believe, and when the first of
// these runs was. The zero doubt says that the last census was believed.
type doubt struct {
	figures
	At int64 `json:"at,omitempty"` // in seconds since 1970
}

// Ledgers stores the ledger between runs.
type Ledgers interface {
	// Load returns the stored ledger, or an empty one if none is stored. With an
	// error that wraps ErrLedgerDamaged, it returns the parts that could be decoded.
	Load(ctx context.Context) (Ledger, error)

	// Save replaces the ledger that Load returned. The error wraps ErrAgain if
	// another client wrote since then.
	Save(ctx context.Context, l Ledger) error

	// Capacity is the largest Len of a ledger that can be stored.
	Capacity() int
}

// ErrLedgerDamaged says that a stored ledger, or a part of it, could not be decoded.
// The allocations of that part count as first seen now.
var ErrLedgerDamaged = errors.New("the ledger is damaged")

// since returns when the allocation was first seen ownerless: while its pod was present,
// or after it was gone. That is now if the ledger does not know it, or has a time in the
// future. A restore begins the time anew.
func (l Ledger) since(a *Allocation, present bool, now time.Time) time.Time {
	at, ok := l.seen[seenKey(a, present)]
	if ok {
		at = latest(at, l.restoredAt(a))
	}
	if !ok || !at.Before(now) {
		return now
	}
	return at
}

// seenKey is the key of the time since which an allocation has been ownerless.
func seenKey(a *Allocation, present bool) string {
	if present {
		return key(a.Backend, a.id()+"\x00present")
	}
	return key(a.Backend, a.id())
}

// node returns the node on which the pod of the allocation was last seen; empty if that
// is not known.
func (l Ledger) node(a *Allocation) string {
	if len(l.nodes) == 0 { // a key costs time
		return ""
	}
	return l.nodes[key(a.Backend, a.id())]
}

// grace returns how long the pod of the allocation may take to end; 0 for the default.
func (l Ledger) grace(a *Allocation) time.Duration {
	if len(l.graces) == 0 {
		return 0
	}
	return l.graces[key(a.Backend, a.place())]
}

// restoredAt returns when a restore put the allocation back; zero if none did.
func (l Ledger) restoredAt(a *Allocation) time.Time {
	if len(l.restored) == 0 {
		return time.Time{}
	}
	return l.restored[key(a.Backend, a.spot())]
}

// Equal reports whether both remember the same.
func (l Ledger) Equal(other Ledger) bool {
	return maps.EqualFunc(l.seen, other.seen, time.Time.Equal) && maps.Equal(l.nodes, other.nodes) &&
		maps.Equal(l.graces, other.graces) && maps.EqualFunc(l.restored, other.restored, time.Time.Equal) &&
		l.figures == other.figures && l.doubt == other.doubt
}

// Len returns the number of times, nodes and graces that it has.
func (l Ledger) Len() int { return len(l.seen) + len(l.nodes) + len(l.graces) + len(l.restored) }

// newLedger returns an empty ledger that may be filled.
func newLedger() Ledger {
	return Ledger{
		seen: make(map[string]time.Time), nodes: make(map[string]string),
		graces: make(map[string]time.Duration), restored: make(map[string]time.Time),
	}
}

// clone returns a copy that may be changed.
func (l Ledger) clone() Ledger {
	c := newLedger()
	c.figures, c.doubt = l.figures, l.doubt
	maps.Copy(c.seen, l.seen)
	maps.Copy(c.nodes, l.nodes)
	maps.Copy(c.graces, l.graces)
	maps.Copy(c.restored, l.restored)
	return c
}

// without returns the ledger without what it has of these allocations.
func (l Ledger) without(released []*Allocation) Ledger {
	l = l.clone()
	for _, a := range released {
		delete(l.seen, seenKey(a, true))
		delete(l.seen, seenKey(a, false))
		delete(l.nodes, key(a.Backend, a.id()))
		delete(l.graces, key(a.Backend, a.place()))
		delete(l.restored, key(a.Backend, a.spot()))
	}
	return l
}

// withRestored returns the ledger of a restore that puts these allocations back.
func (l Ledger) withRestored(back []*Allocation, now time.Time) Ledger {
	l = l.clone()
	for _, a := range back {
		l.restored[key(a.Backend, a.spot())] = toSecond(now)
	}
	return l
}

// Merge returns a ledger with all that either of two ledgers has. If both have an
// allocation, the value by which it waits longer counts. The larger figures count.
func (l Ledger) Merge(other Ledger) Ledger {
	merged := l.clone()
	merged.figures = figures{max(l.figures.Pods, other.figures.Pods), max(l.figures.Nodes, other.figures.Nodes)}
	if other.doubt.At > l.doubt.At {
		merged.doubt = other.doubt
	}
	maps.Copy(merged.nodes, other.nodes)
	mergeMax(merged.seen, other.seen, time.Time.Compare)
	mergeMax(merged.restored, other.restored, time.Time.Compare)
	mergeMax(merged.graces, other.graces, cmp.Compare[time.Duration])
	return merged
}

// mergeMax copies the values that are larger than those that are there.
func mergeMax[V any](into, from map[string]V, compare func(a, b V) int) {
	for id, v := range from {
		if have, ok := into[id]; !ok || compare(v, have) > 0 {
			into[id] = v
		}
	}
}

// tagSize is the length of the part of a key that stands for the backend.
const tagSize = 4

// key shortens an identity, because a token can be as large as the stored allocation.
// 108 bits keep two allocations of a backend apart. The first bits tell the backend, so
// that a run knows of which store an entry is although it did not list that store.
func key(backend, id string) string {
	sum := sha256.Sum256([]byte(id))
	return tag(backend) + base64.RawURLEncoding.EncodeToString(sum[:16])[tagSize:]
}

// tag stands for a backend.
func tag(backend string) string {
	sum := sha256.Sum256([]byte(backend))
	return base64.RawURLEncoding.EncodeToString(sum[:3])
}

// isOf reports whether a key is of one of the backends with these tags.
func isOf(key string, tags map[string]bool) bool { return len(key) >= tagSize && tags[key[:tagSize]] }

// toSecond rounds a time up to the second of the stored form, so that no grace period is
// cut short.
func toSecond(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second) }
