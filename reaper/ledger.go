package reaper

import (
	"context"
	"errors"
	"slices"
	"time"
)

// A Ledger is the memory from run to run:
//
//   - since when allocations have been ownerless without a break;
//   - on which node a pod was last seen, if its store does not name that node;
//   - that a pod hung there, and in which boot of the node;
//   - how long a pod may take to end, if that is longer than the default;
//   - when a restore put an allocation back;
//   - how many pods that were not finished, and how many nodes, the last run found.
//
// After the loss of a ledger, grace periods begin again. The next run then knows neither
// the nodes of pods nor that half of the pods vanished. The zero Ledger is empty. A
// Ledger is a value and never changes.
type Ledger struct {
	salt     ledgerSalt
	seen     ledgerTable[int64]  // in seconds since 1970, by seenKey
	nodes    ledgerTable[uint32] // indices in names, by idKey
	graces   ledgerTable[int32]  // in seconds, by placeKey
	restored ledgerTable[int64]  // in seconds since 1970, by spotKey
	names    []string            // of places, in ascending order; some may be of no entry
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
	// Load returns the stored ledger, or an empty one if none is stored, or with an error
	// that wraps ErrLedgerDamaged. After any other error, also ErrLedgerNewer, Save must not
	// replace what is stored.
	Load(ctx context.Context) (Ledger, error)

	// Save replaces the ledger that Load returned. The error wraps ErrAgain if
	// another client wrote since then.
	Save(ctx context.Context, l Ledger) error

	// Capacity is the length of the longest form that Save can store, in bytes. It may
	// depend on what the last Load found.
	Capacity() int
}

// ErrLedgerDamaged says that a stored ledger could not be decoded. It counts as empty.
var ErrLedgerDamaged = errors.New("the ledger is damaged")

// ErrLedgerNewer says that a later version of this program wrote the ledger in a form that this one cannot read. It is not damaged, and must not be replaced: it
// has grace periods and holds that the later version needs.
var ErrLedgerNewer = errors.New("a newer ip-reaper wrote the ledger: use that version, or delete the ledger; then grace periods begin anew, and what a restore put back is not held any more")

// since returns when the allocation was first seen ownerless: while its pod was present,
// or after it was gone. That is now if the ledger does not know it, or has a time in the
// future. A restore begins the time anew.
func (l Ledger) since(a *Allocation, present bool, now time.Time) time.Time {
	if len(l.seen) == 0 { // a key costs time
		return now
	}
	seconds, ok := l.seen.find(l.salt.seenKey(a, present))
	at := latest(ofSecond(seconds), l.restoredAt(a))
	if !ok || !at.Before(now) {
		return now
	}
	return at
}

// last returns where the pod of the allocation was last seen.
func (l Ledger) last(a *Allocation) place {
	if len(l.nodes) == 0 {
		return place{}
	}
	i, ok := l.nodes.find(l.salt.idKey(a))
	if !ok {
		return place{}
	}
	return placeOf(l.names[i])
}

// grace returns how long the pod of the allocation may take to end; 0 for the default.
func (l Ledger) grace(a *Allocation) time.Duration {
	if len(l.graces) == 0 {
		return 0
	}
	seconds, _ := l.graces.find(l.salt.placeKey(a))
	return time.Duration(seconds) * time.Second
}

// restoredAt returns when a restore put the allocation back; zero if none did.
func (l Ledger) restoredAt(a *Allocation) time.Time {
	if len(l.restored) == 0 {
		return time.Time{}
	}
	seconds, ok := l.restored.find(l.salt.spotKey(a))
	if !ok {
		return time.Time{}
	}
	return ofSecond(seconds)
}

// Equal reports whether both remember the same. It does not compare salts: ledgers of different
// salts are equal only if they have no entries.
func (l Ledger) Equal(other Ledger) bool {
	sameNode := func(a, b tableEntry[uint32]) bool {
		return a.key == b.key && l.names[a.value] == other.names[b.value]
	}
	return slices.Equal(l.seen, other.seen) && slices.EqualFunc(l.nodes, other.nodes, sameNode) &&
		slices.Equal(l.graces, other.graces) && slices.Equal(l.restored, other.restored) &&
		l.figures == other.figures && l.doubt == other.doubt
}

// Len returns the number of times, nodes and graces that it has.
func (l Ledger) Len() int { return len(l.seen) + len(l.nodes) + len(l.graces) + len(l.restored) }

// without returns the ledger without what it has of these allocations. It keeps a restore
// that began after a run saved its ledger: it puts back what the run has released.
func (l Ledger) without(released []*Allocation, saved Ledger) Ledger {
	drop := make(map[ledgerKey]bool, 5*len(released))
	for _, a := range released {
		l.salt.addKeys(drop, a)
	}
	for _, e := range l.restored {
		if at, known := saved.restored.find(e.key); !known || at < e.value {
			delete(drop, e.key)
		}
	}
	return l.only(func(k ledgerKey) bool { return !drop[k] })
}

// only returns the ledger with the entries whose keys satisfy a condition.
func (l Ledger) only(keep func(ledgerKey) bool) Ledger {
	l.seen, l.nodes = l.seen.filter(keep), l.nodes.filter(keep)
	l.graces, l.restored = l.graces.filter(keep), l.restored.filter(keep)
	return l
}

// withRestored returns the ledger of a restore that puts these allocations back.
func (l Ledger) withRestored(back []*Allocation, now time.Time) Ledger {
	spots := make(map[ledgerKey]bool, len(back))
	for _, a := range back {
		spots[l.salt.spotKey(a)] = true
	}
	l.restored = slices.Clip(l.restored.filter(func(k ledgerKey) bool { return !spots[k] }))
	for spot := range spots {
		l.restored.add(spot, toSecond(now).Unix())
	}
	l.restored = l.restored.arranged()
	return l
}

// withHung returns the ledger with the places where pods hang, by these decisions. They are true
// also if the list of pods is not whole.
func (l Ledger) withHung(decisions []Decision) Ledger {
	b, hung := newLedgerBuilder(l), make(map[ledgerKey]bool)
	for i := range decisions {
		if d := &decisions[i]; d.known.last.boot != "" {
			k := l.salt.idKey(d.Allocation)
			hung[k] = true
			b.addNode(k, d.known.last.String())
		}
	}
	l.nodes = l.nodes.filter(func(k ledgerKey) bool { return !hung[k] })
	b.addAll(l)
	return b.ledger()
}

// longAgo returns the ledger by which every grace period is over.
func (l Ledger) longAgo() Ledger {
	l.seen = slices.Clone(l.seen)
	for i := range l.seen {
		l.seen[i].value = time.Time{}.Unix()
	}
	return l
}

// Merge returns a ledger with all that either of two ledgers has. If both have an
// allocation, the value by which it waits longer counts. If they have it on different nodes,
// the last name counts. The larger figures count. Of a ledger with another salt, nothing is
// known.
func (l Ledger) Merge(other Ledger) Ledger {
	if other.Equal(Ledger{}) || other.salt != l.salt {
		return l
	}
	b := newLedgerBuilder(l)
	b.figures = figures{max(l.figures.Pods, other.figures.Pods), max(l.figures.Nodes, other.figures.Nodes)}
	if other.doubt.At > l.doubt.At {
		b.doubt = other.doubt
	}
	b.addAll(l)
	b.addAll(other)
	return b.ledger()
}

// toSecond rounds a time up to the second of the stored form, so that no grace period is
// cut short.
func toSecond(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second) }

// ofSecond returns the time of the stored form.
func ofSecond(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
