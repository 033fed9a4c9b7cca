package ledger_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/reapertest"
)

var (
	hung = ledger.Place{Node: "n1", Boot: "b1"}
	on2  = ledger.Place{Node: "n2"}
)

// entryOf returns what a sandbox has in a pool.
func entryOf(pool, sandbox string) ipam.Allocation {
	return ipam.Allocation{
		Backend: "store", Pool: pool, Key: sandbox, Token: "of " + sandbox, Owner: ipam.Owner{Sandbox: sandbox},
	}
}

// A listed is what a run found in its store.
type listed struct {
	unread []string // pools
	absent bool     // the store was not listed
	has    map[*ipam.Allocation]ledger.Place
}

// after returns the ledger of a run that found this.
func (n listed) after(before ledger.Ledger) ledger.Ledger {
	b := ledger.NewBuilder(before.Salted())
	for a, p := range n.has {
		b.Place(a, p)
		b.Restored(a, before.RestoredAt(a))
	}
	l := ipam.Listing{Backend: "store", Status: ipam.StatusOK, Whole: len(n.unread) == 0}
	for _, pool := range n.unread {
		l.Status = ipam.StatusPartial
		l.Errors = append(l.Errors, &ipam.PoolError{Pool: pool, Err: errors.New("no")})
	}
	if n.absent {
		l = ipam.Listing{Backend: "store", Status: ipam.StatusSkipped}
	}
	b.KeepOthers([]ipam.Listing{l}, maps.Keys(n.has))
	b.KeepHolds(noon, maps.Keys(n.has))
	made, err := ledger.Decode(b.Ledger().Encode())
	if err != nil {
		panic(err)
	}
	return made
}

// Promise 1. Which sequence of runs makes a ledger forget where a pod hangs, while its allocation
// may be in a pool that could not be read?
func TestPlaceIsKeptWhileItsPoolCannotBeRead(t *testing.T) {
	entry, other := entryOf("a", "s1"), entryOf("b", "s2")
	both := listed{has: map[*ipam.Allocation]ledger.Place{&entry: hung, &other: on2}}
	bothBut := func(pool string) listed { return listed{unread: []string{pool}, has: both.has} }
	unread := func(pools ...string) listed { return listed{unread: pools} }
	absent, nothing := listed{absent: true}, listed{}
	refused := func(l ledger.Ledger) ledger.Ledger { // by its census, so it saves only where pods hang
		return l.WithPlaces(maps.All(map[*ipam.Allocation]ledger.Place{&entry: hung}))
	}
	for _, tt := range []struct {
		name string
		runs []listed
		keep bool // of the place of the entry
		size int
	}{
		{"nothing is there", []listed{both, nothing}, false, 0},
		{"its pool cannot be read", []listed{both, unread("a")}, true, 2},
		{"its pool cannot be read, for long", []listed{both, unread("a"), unread("a"), unread("a")}, true, 2},
		{"after that, another one cannot", []listed{both, unread("a"), unread("b"), unread("b")}, true, 2},
		{"after that, none of either", []listed{both, unread("a"), unread("a", "b"), unread("b", "a")}, true, 2},
		{"its pool and then its store cannot be read", []listed{both, unread("a"), absent, unread("a")}, true, 2},
		{"its store is back, and then its pool cannot be read", []listed{both, absent, unread("a"), unread("a")}, true, 2},
		{"another pool could not be read before", []listed{bothBut("c"), unread("c", "a"), unread("c", "a")}, true, 2},
		{"the pools take turns", []listed{bothBut("c"), unread("a"), unread("c"), unread("a")}, true, 2},
		{"another pool could not be read before and after its store was away", []listed{bothBut("c"), absent, unread("c")}, false, 0},
		{"another pool cannot be read, and could be before", []listed{both, unread("c")}, true, 2},
		{"another pool cannot be read, as before", []listed{bothBut("c"), unread("c")}, false, 0},
		{"its pool can be read again", []listed{both, unread("a"), nothing}, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l, beside ledger.Ledger
			for _, n := range tt.runs {
				l = n.after(l)
				beside = refused(n.after(beside.Salted()))
			}
			equal(t, "its place is known", l.Last(&entry) == hung, tt.keep)
			equal(t, "entries", l.Len(), tt.size)
			equal(t, "its place is known after refused runs", beside.Last(&entry), hung)
		})
	}
}

// Promise 1. A run that is refused by its census could read a pool that the runs before and after it
// cannot, and saves only where pods hang.
func TestPlaceOfARefusedRunIsKept(t *testing.T) {
	entry := entryOf("a", "s1")
	l := listed{unread: []string{"a"}}.after(ledger.Ledger{})
	l = l.WithPlaces(maps.All(map[*ipam.Allocation]ledger.Place{&entry: hung}))
	for range 2 {
		l = listed{unread: []string{"a"}}.after(l)
		equal(t, "place", l.Last(&entry), hung)
	}
}

// While one pool of a hundred cannot be read, the ledger has what that pool may have, and not what
// came and went in the others.
func TestLedgerDoesNotGrowWhileAPoolCannotBeRead(t *testing.T) {
	own := entryOf("broken", "own")
	l := listed{has: map[*ipam.Allocation]ledger.Place{&own: hung}}.after(ledger.Ledger{})
	for run := range 30 {
		has := make(map[*ipam.Allocation]ledger.Place)
		for n := range 100 {
			a := entryOf(fmt.Sprint("pool ", n), fmt.Sprintf("sandbox %d of run %d", n, run))
			has[&a] = on2
		}
		l = listed{unread: []string{"broken"}, has: has}.after(l)
		equal(t, "entries", l.Len(), 101)
		equal(t, "place of what the pool has", l.Last(&own), hung)
	}
}

// Promise 1. A ledger that is full loses nothing while a pool cannot be read.
func TestFullLedgerKeepsAllOfAPoolThatCannotBeRead(t *testing.T) {
	entry, other := entryOf("a", "s1"), entryOf("b", "s2")
	l := listed{has: map[*ipam.Allocation]ledger.Place{&entry: hung, &other: on2}}.after(ledger.Ledger{})
	full := len(l.Encode())
	for range 3 {
		var left int
		l, left = listed{unread: []string{"a"}, has: map[*ipam.Allocation]ledger.Place{&other: on2}}.after(l).Fit(full)
		equal(t, "left out", left, 0)
		equal(t, "place", l.Last(&entry), hung)
	}
}

// Promise 4. What a run decided about an allocation replaces what the ledger had, also if something
// else in its store could not be read.
func TestDecidedAllocationHasNoOldTime(t *testing.T) {
	entry, unread := entryOf("a", "s1"), entryOf("b", "s2")
	b := ledger.NewBuilder(ledger.Ledger{}.Salted())
	b.Seen(&entry, false, noon)
	b.Seen(&unread, false, noon)
	l := listed{unread: []string{"b"}, has: map[*ipam.Allocation]ledger.Place{&entry: on2}}.after(b.Ledger())
	equal(t, "knows what it decided", l.Knows(&entry, false), false)
	equal(t, "knows what it could not read", l.Knows(&unread, false), true)
}

// A run must save what it could not read, even if it knows nothing else that is new.
func TestLedgersOfDifferentUnreadPoolsDiffer(t *testing.T) {
	l := listed{unread: []string{"a"}}.after(ledger.Ledger{})
	equal(t, "equal to the next", l.Equal(listed{unread: []string{"a"}}.after(l)), true)
	equal(t, "equal to one without it", l.Equal(listed{}.after(l)), false)
	equal(t, "equal to one of another pool", l.Equal(listed{unread: []string{"b"}}.after(l)), false)
}

// Promise 1. Of two ledgers that could not read different pools, neither says what the other one's
// pool may have.
func TestMergedLedgerLosesNothingOfEitherUnreadPool(t *testing.T) {
	entry, other := entryOf("a", "s1"), entryOf("b", "s2")
	first := listed{unread: []string{"b"}, has: map[*ipam.Allocation]ledger.Place{&entry: hung}}.after(ledger.Ledger{})
	second := listed{unread: []string{"a"}, has: map[*ipam.Allocation]ledger.Place{&other: hung}}.after(ledger.Ledger{})
	whole := listed{has: map[*ipam.Allocation]ledger.Place{&entry: hung}}.after(ledger.Ledger{})
	for _, tt := range []struct {
		name   string
		merged ledger.Ledger
		unread string
		of     *ipam.Allocation
	}{
		{"the first, which could not read b", first.Merge(second), "b", &other},
		{"the first, and then its own pool is unread", first.Merge(second), "a", &entry},
		{"the other way round", second.Merge(first), "a", &entry},
		{"one that read all", second.Merge(whole), "a", &entry},
	} {
		equal(t, "place after "+tt.name, listed{unread: []string{tt.unread}}.after(tt.merged).Last(tt.of), hung)
	}
	both := first.Merge(listed{unread: []string{"b"}, has: map[*ipam.Allocation]ledger.Place{&entry: hung}}.after(first))
	equal(t, "entries of two that could not read the same, once it is gone", listed{unread: []string{"b"}}.after(both).Len(), 0)
}

// Promise 1. A restore is held, and where it says that the pod hung is known, in every run until the
// hold is over: also if that run had listed the stores before the restore, or could not read its
// pool.
func TestRestoreIsKeptUntilItsHoldIsOver(t *testing.T) {
	entry := entryOf("a", "s1")
	back := entry
	back.Token = "of the restore"
	recorded := ipam.Allocation{Backend: entry.Backend, Pool: entry.Pool, Key: entry.Key, Owner: entry.Owner}
	restored := func(l ledger.Ledger, at time.Time) ledger.Ledger {
		return l.Salted().WithRestored(maps.All(map[*ipam.Allocation]ledger.Place{&recorded: hung}), at)
	}
	began := noon.Add(time.Hour)
	seen := map[*ipam.Allocation]ledger.Place{&entry: on2}
	unread := []string{"a"}
	for name, l := range map[string]ledger.Ledger{
		"nothing was known": restored(ledger.Ledger{}, began),
		"the run was killed before it forgot what it released": restored(listed{has: seen}.after(ledger.Ledger{}), began),
		"its pool could not be read":                           restored(listed{unread: unread}.after(ledger.Ledger{}), began),
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []listed{{}, {has: map[*ipam.Allocation]ledger.Place{&back: hung}}, {unread: unread}, {unread: unread}, {absent: true}, {}} {
				l = n.after(l)
				equal(t, "place", l.Last(&back), hung)
			}
			equal(t, "restored", l.RestoredAt(&back), began)
		})
	}
	equal(t, "entries once the hold is over", listed{}.after(restored(ledger.Ledger{}, noon)).Len(), 0)
	l := restored(listed{unread: unread}.after(ledger.Ledger{}), noon)
	for range 3 {
		l = listed{unread: unread}.after(l)
		equal(t, "place once the hold is over, and its pool was not read since", l.Last(&back), hung)
	}
	saved := listed{has: seen}.after(ledger.Ledger{})
	beside := restored(saved, began).Without(slices.Collect(maps.Keys(seen)), saved)
	equal(t, "place after a run beside it forgot what it released", beside.Last(&back), hung)
	equal(t, "restored", beside.RestoredAt(&back), began)
	known := restored(saved, began)
	again := known.Without(slices.Collect(maps.Keys(seen)), known)
	equal(t, "restored, after a run released it again", again.RestoredAt(&back), time.Time{})
}

// A time from before a restore is forgotten, even if the run that released was killed before it forgot it.
func TestTimeIsKeptUnlessItIsFromBeforeARestore(t *testing.T) {
	a := reapertest.WebAllocation()
	b := ledger.NewBuilder(ledger.Ledger{}.Salted())
	b.Seen(&a, false, noon)
	seen := b.Ledger()
	for after, want := range map[time.Duration]bool{-time.Second: true, 0: true, time.Second: false} {
		restored := seen.WithRestored(maps.All(map[*ipam.Allocation]ledger.Place{&a: {}}), noon.Add(after))
		next := ledger.NewBuilder(restored)
		next.KeepSeen(&a, false)
		equal(t, fmt.Sprintf("known if it was restored %v after", after), next.Ledger().Knows(&a, false), want)
	}
}
