// Package ledger is the memory from run to run: a value (Ledger), its stored form (Encode and
// Decode), and the contract of its store (Store).
package ledger

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A Ledger is the memory from run to run:
//
//   - since when allocations have been ownerless without a break;
//   - on which node a pod was last seen, if its store does not name that node;
//   - that a pod hung there, or was a mirror, and in which boot of the node;
//   - on a node, in which boot a run first saw an allocation that is kept until the next one;
//   - how long a pod may take to end, if that is longer than the default;
//   - when a restore put an allocation back;
//   - how many pods that were not finished, and how many nodes, the last run found;
//   - which stores outside the API server it found;
//   - which nodes stores may mean by their names of nodes;
//   - how the last runs ended;
//   - how many addresses each network had in the last day;
//   - how much all runs released, and how many there were.
//
// If the ledger is lost, grace periods begin again. The next run then knows neither the
// nodes of pods nor that half of the pods vanished, nor that a store is another one. The zero Ledger is empty. A Ledger is
// a value and never changes.
type Ledger struct {
	Figures census.Figures // of the last census that was believed
	Doubt   Doubt
	Runs    []Run // the latest last, at most MaxRuns
	Totals  Totals
	Uses    []Use // the latest last: see WithUse

	// Stores has the identity of each store outside the API server, by backend: see ipam.Store.
	Stores map[string]string

	Meanings []Meaning // as ArrangeMeanings returns them

	salt     ledgerSalt
	seen     ledgerTable[int64]  // in seconds since 1970, by seenKey
	nodes    ledgerTable[string] // stored forms of places, by idKey
	graces   ledgerTable[int32]  // in seconds, by placeKey
	restored ledgerTable[int64]  // in seconds since 1970, by spotKey

	// unlisted has the keys of entries that the last listing of their store did not find: they may
	// be of a pool that could not be read. unread has, for each store of which pools could not be
	// read, the unreadKey of these.
	unlisted, unread ledgerKeys
}

// A Doubt has the figures of a census that runs did not believe, and when the first of
// these runs was. The zero Doubt says that the last census was believed.
type Doubt struct {
	census.Figures
	At int64 // in seconds since 1970
}

// Store stores the ledger between runs.
type Store interface {
	// Load returns the stored ledger, or an empty one if none is stored or if the error
	// wraps ErrDamaged. After any other error, including ErrNewer, Save must not replace
	// what is stored.
	Load(ctx context.Context) (Ledger, error)

	// Save replaces the ledger that Load returned. The error wraps ErrAgain if
	// another client wrote since then.
	Save(ctx context.Context, l Ledger) error

	// Changed reports whether the stored ledger may be another one than Load returned, or Save wrote,
	// last. It reads no more than it must to tell, and may be called at the same time as itself. The
	// error says that there is none any more, or that it cannot tell: it wraps ErrAgain if a later
	// call may.
	Changed(ctx context.Context) (bool, error)

	// Capacity is the length of the longest form that Save can store, in bytes.
	Capacity() int
}

// ErrDamaged says that a stored ledger could not be decoded. It counts as empty.
var ErrDamaged = errors.New("the ledger is damaged")

// ErrNewer says that a later version of this program wrote the ledger in a form that this one
// cannot read. It is not damaged, and must not be replaced: it has grace periods and holds that
// the later version needs.
var ErrNewer = errors.New("a newer ip-reaper wrote the ledger: use that version, or delete the ledger; then grace periods begin anew, and where pods hung and what a restore put back is forgotten")

// Since returns when the allocation was first seen ownerless: while its pod was present,
// or after it was gone. That is now if the ledger does not know it, or has a time in the
// future. A restore restarts the time.
func (l Ledger) Since(a *ipam.Allocation, present bool, now time.Time) time.Time {
	if len(l.seen) == 0 { // a key costs time
		return now
	}
	seconds, ok := l.seen.find(l.salt.seenKey(a, present))
	at := ofSecond(seconds)
	if restored := l.RestoredAt(a); restored.After(at) {
		at = restored
	}
	if !ok || !at.Before(now) {
		return now
	}
	return at
}

// Last returns where the pod of the allocation was last seen. Until a run has seen what a
// restore put back, that comes from the journal; but not on a node, where the person who restores knows now that the
// sandbox runs, in whichever boot it was seen before.
func (l Ledger) Last(a *ipam.Allocation) Place {
	if len(l.nodes) == 0 {
		return Place{}
	}
	stored, known := l.nodes.find(l.salt.idKey(a))
	if !known && len(l.restored) > 0 && a.Owner.Sandbox != "" && !a.ByRuntime { // a key costs time
		stored, _ = l.nodes.find(l.salt.homeKey(a))
	}
	return placeOf(stored)
}

// Grace returns how long the pod of the allocation may take to end; 0 for the default.
func (l Ledger) Grace(a *ipam.Allocation) time.Duration {
	if len(l.graces) == 0 {
		return 0
	}
	seconds, _ := l.graces.find(l.salt.placeKey(a))
	return time.Duration(seconds) * time.Second
}

// RestoredAt returns when a restore put the allocation back; zero if none did.
func (l Ledger) RestoredAt(a *ipam.Allocation) time.Time {
	return timeIn(l.restored, a, l.salt.spotKey)
}

// timeIn returns the time that a table has for an allocation; zero if it has none.
func timeIn(times ledgerTable[int64], a *ipam.Allocation, key func(*ipam.Allocation) ledgerKey) time.Time {
	if len(times) == 0 { // a key costs time
		return time.Time{}
	}
	seconds, known := times.find(key(a))
	if !known {
		return time.Time{}
	}
	return ofSecond(seconds)
}

// Equal reports whether a run decides and remembers the same with both. It compares neither how
// runs ended, nor totals, nor uses, nor salts: ledgers with different salts are equal only if they have no entries.
func (l Ledger) Equal(other Ledger) bool {
	return slices.Equal(l.seen, other.seen) && slices.Equal(l.nodes, other.nodes) &&
		slices.Equal(l.graces, other.graces) && slices.Equal(l.restored, other.restored) &&
		slices.Equal(l.unlisted, other.unlisted) && slices.Equal(l.unread, other.unread) &&
		l.Figures == other.Figures && l.Doubt == other.Doubt && maps.Equal(l.Stores, other.Stores) &&
		slices.Equal(l.Meanings, other.Meanings)
}

// Len returns the number of times, nodes and graces that it has.
func (l Ledger) Len() int { return len(l.seen) + len(l.nodes) + len(l.graces) + len(l.restored) }

// Without returns the ledger without what it has for these allocations. It keeps a restore
// that began after the run saved its ledger: that puts back what the run released.
func (l Ledger) Without(released []*ipam.Allocation, saved Ledger) Ledger {
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

// keys yields the keys of all entries.
func (l Ledger) keys() iter.Seq[ledgerKey] {
	return func(yield func(ledgerKey) bool) {
		for _, keys := range [...]iter.Seq[ledgerKey]{l.seen.keys, l.nodes.keys, l.graces.keys, l.restored.keys} {
			for k := range keys {
				if !yield(k) {
					return
				}
			}
		}
	}
}

// only returns the ledger with the entries whose keys satisfy a condition.
func (l Ledger) only(keep func(ledgerKey) bool) Ledger {
	l.seen, l.nodes = l.seen.filter(keep), l.nodes.filter(keep)
	l.graces, l.restored = l.graces.filter(keep), l.restored.filter(keep)
	l.unlisted = l.unlisted.filter(keep)
	return l
}

// WithRestored returns the ledger of a restore that puts these allocations back, whose pods
// were last seen at these places.
func (l Ledger) WithRestored(back iter.Seq2[*ipam.Allocation, Place], now time.Time) Ledger {
	spots, homes := make(map[ledgerKey]bool), make(map[ledgerKey]string)
	for a, last := range back {
		spots[l.salt.spotKey(a)] = true
		if last != (Place{}) && a.Owner.Sandbox != "" {
			homes[l.salt.homeKey(a)] = last.String() + ofRestore
		}
	}
	l.restored = slices.Clip(l.restored.filter(func(k ledgerKey) bool { return !spots[k] }))
	l.unlisted = slices.Clip(l.unlisted)
	for spot := range spots {
		l.restored.add(spot, ToSecond(now).Unix())
		l.unlisted.add(spot, 0)
	}
	l.nodes = slices.Clip(l.nodes.filter(func(k ledgerKey) bool { return homes[k] == "" }))
	for key, home := range homes {
		l.nodes.add(key, home)
		l.unlisted.add(key, 0)
	}
	l.restored, l.nodes, l.unlisted = l.restored.arranged(), l.nodes.arranged(), l.unlisted.arranged()
	return l
}

// WithoutRestored returns the ledger without the mark of the restore that began then on these
// allocations, which it did not put back. A mark that the ledger had before it, or that a later restore
// made, stays.
func (l Ledger) WithoutRestored(not []*ipam.Allocation, then time.Time, before Ledger) Ledger {
	drop := make(map[ledgerKey]bool, len(not))
	for _, a := range not {
		spot := l.salt.spotKey(a)
		if at, _ := l.restored.find(spot); at == ToSecond(then).Unix() && !before.restored.has(spot) {
			drop[spot] = true
		}
	}
	return l.only(func(k ledgerKey) bool { return !drop[k] })
}

// WithPlaces returns the ledger with these places of pods instead of those that it has for them. It
// does not know which pools could be read when they were found.
func (l Ledger) WithPlaces(places iter.Seq2[*ipam.Allocation, Place]) Ledger {
	b, placed := NewBuilder(l), make(map[ledgerKey]bool)
	for a, p := range places {
		k := l.salt.idKey(a)
		placed[k] = true
		b.made.unlisted.add(k, 0)
		b.Place(a, p)
	}
	l.nodes = l.nodes.filter(func(k ledgerKey) bool { return !placed[k] })
	b.addAll(l)
	return b.Ledger()
}

// Knows reports whether the ledger has the time since which the allocation has been ownerless:
// while its pod was present, or after it was gone.
func (l Ledger) Knows(a *ipam.Allocation, present bool) bool {
	_, known := l.seen.find(l.salt.seenKey(a, present))
	return known
}

// LongAgo returns the ledger with times by which every grace period is over.
func (l Ledger) LongAgo() Ledger {
	l.seen = slices.Clone(l.seen)
	for i := range l.seen {
		l.seen[i].value = time.Time{}.Unix()
	}
	return l
}

// Merge returns a ledger with all that either of two ledgers has. If both have an
// allocation, the value that makes it wait longer counts. If they have it on different
// nodes, the last name counts. The larger figures count. If both have the store of a backend, that
// of the first ledger counts, as do its runs and totals. Nothing is taken from a ledger with
// another salt.
func (l Ledger) Merge(other Ledger) Ledger {
	if other.Equal(Ledger{}) || other.salt != l.salt {
		return l
	}
	b := NewBuilder(l)
	b.made.Figures = census.Figures{Pods: max(l.Figures.Pods, other.Figures.Pods), Nodes: max(l.Figures.Nodes, other.Figures.Nodes)}
	for backend, id := range other.Stores {
		if _, known := l.Stores[backend]; !known {
			b.Store(backend, id)
		}
	}
	if other.Doubt.At > l.Doubt.At {
		b.made.Doubt = other.Doubt
	}
	b.made = b.made.WithMeanings(other.Meanings)
	b.addAll(l)
	b.addAll(other)
	b.made.unread = l.unread.filter(other.unread.has)
	return b.Ledger()
}

// ToSecond rounds a time up to the second of the stored form, so that no grace period is
// cut short.
func ToSecond(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second) }

// ofSecond returns the time of the stored form.
func ofSecond(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
