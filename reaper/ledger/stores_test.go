package ledger_test

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

var (
	hung = ledger.Place{Node: "n1", Boot: "b1"}
	on2  = ledger.Place{Node: "n2"}
)

// entryOf returns the entry of a sandbox in a pool, and reservationOf its overlapping-range
// reservation.
func entryOf(pool, sandbox string, n byte) ipam.Allocation {
	return ipam.Allocation{
		Backend: "whereabouts", Pool: pool, Key: fmt.Sprint(n), Token: "entry of " + sandbox,
		IP: netip.AddrFrom4([4]byte{10, 0, 0, n}), Owner: ipam.Owner{Sandbox: sandbox},
	}
}

func reservationOf(entry ipam.Allocation) ipam.Allocation {
	entry.Backend, entry.Pool, entry.Token = "overlapping", "reservation "+entry.IP.String(), "version 1"
	return entry
}

// A listed is what a run found in its stores.
type listed struct {
	whereabouts, overlapping []string // what could not be read
	absent                   []string // stores that were not listed
	has                      map[*ipam.Allocation]ledger.Place
}

// after returns the ledger of a run that found this.
func (n listed) after(before ledger.Ledger) ledger.Ledger {
	b := ledger.NewBuilder(before.Salted())
	for a, p := range n.has {
		b.Place(a, p)
		b.Restored(a, before.RestoredAt(a))
	}
	var listings []ipam.Listing
	for name, unread := range map[string][]string{"whereabouts": n.whereabouts, "overlapping": n.overlapping} {
		l := ipam.Listing{Backend: name, Status: ipam.StatusOK}
		for _, pool := range unread {
			l.Status = ipam.StatusPartial
			l.Errors = append(l.Errors, &ipam.PoolError{Pool: pool, Err: errors.New("no")})
		}
		if slices.Contains(n.absent, name) {
			l = ipam.Listing{Backend: name, Status: ipam.StatusSkipped}
		}
		listings = append(listings, l)
	}
	slices.SortFunc(listings, func(a, b ipam.Listing) int { return len(a.Backend) - len(b.Backend) })
	b.KeepOthers(listings, maps.Keys(n.has))
	b.KeepHolds(noon, maps.Keys(n.has))
	l, err := ledger.Decode(b.Ledger().Encode())
	if err != nil {
		panic(err)
	}
	return l
}

// Where a pod was seen is remembered once for each sandbox and address, in whichever store that is.
func TestEntryAndItsReservationShareAPlace(t *testing.T) {
	entry := entryOf("a", "s1", 1)
	reservation := reservationOf(entry)
	for name, other := range map[string]ipam.Allocation{
		"of a later sandbox, which has the same address": entryOf("a", "s2", 1),
		"of the same sandbox, which has another address": entryOf("a", "s1", 2),
	} {
		l := listed{has: map[*ipam.Allocation]ledger.Place{&entry: hung, &reservation: hung, &other: on2}}.after(ledger.Ledger{})
		equal(t, "entries with one "+name, l.Len(), 2)
		equal(t, "place of the entry", l.Last(&entry), hung)
		equal(t, "place of the reservation", l.Last(&reservation), hung)
		equal(t, "place of one "+name, l.Last(&other), on2)
	}
	alone := listed{has: map[*ipam.Allocation]ledger.Place{&reservation: hung}}.after(ledger.Ledger{})
	equal(t, "place of an entry that a run did not see", alone.Last(&entry), hung)

	nameless, next := entryOf("a", "", 1), entryOf("a", "", 1)
	next.Token = "another one"
	l := listed{has: map[*ipam.Allocation]ledger.Place{&nameless: hung}}.after(ledger.Ledger{})
	equal(t, "place of an allocation that names no sandbox", l.Last(&nameless), hung)
	equal(t, "place of another one there", l.Last(&next), ledger.Place{})
}

// Promise 1. Which sequence of runs makes a ledger forget where a pod hangs, while an allocation of
// its sandbox may exist? What the ledger has is needed until a run read the store of each of them.
func TestPlaceIsKeptWhileAnAllocationOfItMayExist(t *testing.T) {
	entry, gone := entryOf("a", "s1", 1), entryOf("b", "s2", 2)
	reservation := reservationOf(entry)
	both := map[*ipam.Allocation]ledger.Place{&entry: hung, &reservation: hung, &gone: on2}
	withoutEntry := map[*ipam.Allocation]ledger.Place{&reservation: hung}
	nothing := map[*ipam.Allocation]ledger.Place{}
	unread := func(pools ...string) listed { return listed{whereabouts: pools, has: withoutEntry} }
	alone := func(n listed) listed { n.has = nothing; return n }
	for _, tt := range []struct {
		name string
		runs []listed
		keep bool // of the place of the entry
		size int
	}{
		{"nothing is there", []listed{{has: both}, {has: nothing}}, false, 0},
		{"its reservation is there", []listed{{has: both}, {has: withoutEntry}}, true, 1},
		{"its pool cannot be read", []listed{{has: both}, unread("a")}, true, 2},
		{"its pool cannot be read, for long", []listed{{has: both}, unread("a"), alone(unread("a")), alone(unread("a"))}, true, 2},
		{"after that, another one cannot", []listed{{has: both}, unread("a"), alone(unread("b")), alone(unread("b"))}, true, 2},
		{"after that, none of either", []listed{{has: both}, unread("a"), alone(unread("a", "b"))}, true, 2},
		{"its pool and then its store cannot be read", []listed{{has: both}, unread("a"), {absent: []string{"whereabouts"}, has: nothing}, alone(unread("a"))}, true, 2},
		{"its store is back, and then its pool cannot be read", []listed{{has: both}, {absent: []string{"whereabouts"}, has: nothing}, alone(unread("a"))}, true, 2},
		{"another pool could not be read before", []listed{{whereabouts: []string{"c"}, has: both}, alone(unread("c", "a")), alone(unread("c", "a"))}, true, 2},
		{"the pools take turns", []listed{{whereabouts: []string{"c"}, has: both}, alone(unread("a")), alone(unread("c")), alone(unread("a"))}, true, 2},
		{"only another pool cannot be read", []listed{{whereabouts: []string{"c"}, has: both}, alone(unread("c"))}, false, 0},
		{"its pool can be read again", []listed{{has: both}, unread("a"), {has: nothing}}, false, 0},
		{"its reservation cannot be read", []listed{{has: both}, {overlapping: []string{"r"}, has: nothing}}, true, 1},
		{"reservations are not listed", []listed{{has: both}, {absent: []string{"overlapping"}, has: nothing}}, true, 1},
		{"reservations are not listed, and then not all", []listed{
			{has: both}, {absent: []string{"overlapping"}, has: nothing}, {overlapping: []string{"r"}, has: nothing},
		}, true, 1},
		{"its entry alone was listed last", []listed{
			{has: both}, {absent: []string{"overlapping"}, has: map[*ipam.Allocation]ledger.Place{&entry: hung}}, {overlapping: []string{"r"}, has: nothing},
		}, true, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l ledger.Ledger
			for _, n := range tt.runs {
				l = n.after(l)
			}
			equal(t, "its place is known", l.Last(&entry) == hung, tt.keep)
			equal(t, "entries", l.Len(), tt.size)
		})
	}
}

// Promise 1. Between two runs that could not read a pool, a third one refused its census, and
// remembered only that the pod of what the pool has hangs. Then the pool could be read.
func TestPlaceOfARefusedRunIsKept(t *testing.T) {
	entry := entryOf("a", "s1", 1)
	l := listed{whereabouts: []string{"a"}}.after(ledger.Ledger{})
	l = l.WithPlaces(maps.All(map[*ipam.Allocation]ledger.Place{&entry: hung}))
	for range 3 {
		l = listed{whereabouts: []string{"a"}}.after(l)
		equal(t, "place", l.Last(&entry), hung)
	}
}

// While one pool of a hundred cannot be read, the ledger has what that pool may have, and not what
// came and went in the others.
func TestLedgerDoesNotGrowWhileAPoolCannotBeRead(t *testing.T) {
	own := entryOf("broken", "own", 1)
	l := listed{has: map[*ipam.Allocation]ledger.Place{&own: hung}}.after(ledger.Ledger{})
	for run := range 30 {
		has := make(map[*ipam.Allocation]ledger.Place)
		for n := range byte(100) {
			a := entryOf(fmt.Sprint("pool ", n), fmt.Sprintf("sandbox %d of run %d", n, run), n)
			has[&a] = on2
		}
		l = listed{whereabouts: []string{"broken"}, has: has}.after(l)
		equal(t, "entries", l.Len(), 101)
		equal(t, "place of what the pool has", l.Last(&own), hung)
	}
}

// What a later run says about a sandbox counts, not what a pool that cannot be read may say.
func TestLaterPlaceCounts(t *testing.T) {
	entry := entryOf("a", "s1", 1)
	reservation := reservationOf(entry)
	mirror := func(boot string) ledger.Place { return ledger.Place{Node: "n1", Boot: boot, Mirror: true} }
	l := listed{has: map[*ipam.Allocation]ledger.Place{&entry: mirror("b9"), &reservation: mirror("b9")}}.after(ledger.Ledger{})
	l = listed{whereabouts: []string{"a"}, has: map[*ipam.Allocation]ledger.Place{&reservation: mirror("b1")}}.after(l)
	equal(t, "place", l.Last(&entry), mirror("b1"))
	l = l.WithRestored(maps.All(map[*ipam.Allocation]ledger.Place{&entry: mirror("b9")}), noon)
	equal(t, "place after a restore", l.Last(&entry), mirror("b1"))
}

// Promise 4. What a run decided about an allocation replaces what the ledger had, also if something
// else in its store could not be read.
func TestDecidedAllocationHasNoOldTime(t *testing.T) {
	entry, unread := entryOf("a", "s1", 1), entryOf("b", "s2", 2)
	b := ledger.NewBuilder(ledger.Ledger{}.Salted())
	b.Seen(&entry, false, noon)
	b.Seen(&unread, false, noon)
	l := listed{whereabouts: []string{"b"}, has: map[*ipam.Allocation]ledger.Place{&entry: on2}}.after(b.Ledger())
	equal(t, "knows what it decided", l.Knows(&entry, false), false)
	equal(t, "knows what it could not read", l.Knows(&unread, false), true)
}

// A run must save what it could not read, even if it knows nothing else that is new.
func TestLedgersOfDifferentUnreadPoolsDiffer(t *testing.T) {
	l := listed{whereabouts: []string{"a"}}.after(ledger.Ledger{})
	equal(t, "equal to the next", l.Equal(listed{whereabouts: []string{"a"}}.after(l)), true)
	equal(t, "equal to one without it", l.Equal(listed{}.after(l)), false)
	equal(t, "equal to one of another pool", l.Equal(listed{whereabouts: []string{"b"}}.after(l)), false)
}

// What a run releases is forgotten in its store. Its reservation, whose release failed, still needs
// the place.
func TestReleaseOfOneOfTwoLeavesThePlace(t *testing.T) {
	entry := entryOf("a", "s1", 1)
	reservation := reservationOf(entry)
	saved := listed{has: map[*ipam.Allocation]ledger.Place{&entry: hung, &reservation: hung}}.after(ledger.Ledger{})
	l := saved.Without([]*ipam.Allocation{&entry}, saved)
	equal(t, "place of the reservation", l.Last(&reservation), hung)
	l = listed{has: map[*ipam.Allocation]ledger.Place{}}.after(l)
	equal(t, "entries once it is gone", l.Len(), 0)
	unread := listed{whereabouts: []string{"a"}, has: map[*ipam.Allocation]ledger.Place{&reservation: hung}}.after(saved)
	l = unread.Without([]*ipam.Allocation{&reservation}, unread)
	for range 2 {
		l = listed{whereabouts: []string{"a"}}.after(l)
		equal(t, "place of an entry that cannot be read", l.Last(&entry), hung)
	}
	equal(t, "entries after the release of both, one of which could not be read", unread.Without([]*ipam.Allocation{&entry, &reservation}, unread).Len(), 0)
	equal(t, "entries after the release of both", saved.Without([]*ipam.Allocation{&entry, &reservation}, saved).Len(), 0)
}

// Promise 1. A restore is held, and where it says that the pod hung is known, in every run until the
// hold is over: also if that run had listed the stores before the restore, or is killed.
func TestRestoreIsKeptUntilItsHoldIsOver(t *testing.T) {
	entry := entryOf("a", "s1", 1)
	back := entry
	back.Token = "of the restore"
	recorded := ipam.Allocation{Backend: entry.Backend, Pool: entry.Pool, Key: entry.Key, IP: entry.IP, Owner: entry.Owner}
	restored := func(l ledger.Ledger, at time.Time) ledger.Ledger {
		return l.Salted().WithRestored(maps.All(map[*ipam.Allocation]ledger.Place{&recorded: hung}), at)
	}
	seen := listed{has: map[*ipam.Allocation]ledger.Place{&entry: on2}}
	began := noon.Add(time.Hour)
	for name, l := range map[string]ledger.Ledger{
		"what the run released is forgotten":     restored(ledger.Ledger{}, began),
		"the run was killed before it forgot it": restored(seen.after(ledger.Ledger{}), began),
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []listed{{}, {has: map[*ipam.Allocation]ledger.Place{&back: hung}}, {}, {absent: []string{"whereabouts"}}, {}} {
				l = n.after(l)
				equal(t, "place", l.Last(&back), hung)
			}
			equal(t, "restored", l.RestoredAt(&back), began)
		})
	}
	over := restored(ledger.Ledger{}, noon)
	equal(t, "entries once the hold is over", listed{}.after(over).Len(), 0)

	saved := seen.after(ledger.Ledger{})
	beside := restored(saved, began).Without([]*ipam.Allocation{&entry}, saved)
	equal(t, "place after a run beside it forgot what it released", beside.Last(&back), hung)
	equal(t, "restored", beside.RestoredAt(&back), began)
}
