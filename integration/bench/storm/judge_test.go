package main

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// second is a time so many seconds after some moment.
func second(n int) time.Time { return time.Unix(1_800_000_000+int64(n), 0) }

// settler is a sandbox of the wide or of the narrow range, whose ADD was from
// second 10 to 11.
func settler(pod string, place int) *sandbox {
	return &sandbox{pod: pod, id: "sandbox-of-" + pod, place: place, ip: netip.MustParseAddr("10.60.0.5"), began: second(10), answered: second(11)}
}

// Only what the plugin itself says of itself excuses it, and only for a
// reservation.
func TestOnlyThePluginsOwnWordExcusesIt(t *testing.T) {
	reservation := fact{kindReservation, "10.60.0.5"}
	of, other := settler("web-0", 0), settler("web-1", 1)
	del := func(began, ended int) unmaking { return unmaking{"10.60.0.5", other, second(began), second(ended)} }
	for _, tt := range []struct {
		name       string
		what       fact
		unreserved bool
		dels       []unmaking
		released   []release
		want       string
	}{
		{name: "no log says anything", what: reservation},
		{name: "its ADD forgot", what: reservation, unreserved: true, want: "its ADD forgot to reserve"},
		{name: "its ADD forgot, and the pool's entry is gone", what: fact{kindEntry, "10.60.0.0-27 10.60.0.5"}, unreserved: true},
		{name: "a late DEL", what: reservation, dels: []unmaking{del(9, 12)}, want: "the DEL of web-1/sandbox- deleted it"},
		{name: "a DEL, and the pool's entry is gone", what: fact{kindEntry, "10.60.0.0-27 10.60.0.5"}, dels: []unmaking{del(9, 12)}},
		{name: "a DEL that was over before the ADD", what: reservation, dels: []unmaking{del(8, 9)}},
		{name: "a DEL that began after the finding", what: reservation, dels: []unmaking{del(21, 22)}},
		{name: "a DEL of another address", what: reservation, dels: []unmaking{{"10.60.0.6", other, second(9), second(12)}}},
		{name: "a DEL of its own", what: reservation, dels: []unmaking{{"10.60.0.5", of, second(9), second(12)}}},
		{
			name: "a DEL, and a release", what: reservation, dels: []unmaking{del(9, 12)},
			released: []release{{"overlapping", "10.60.0.5", second(11), second(13)}},
		},
		{
			name: "a DEL, and a release that was over before the ADD", what: reservation, dels: []unmaking{del(9, 12)},
			released: []release{{"overlapping", "10.60.0.5", second(7), second(8)}}, want: "the DEL of web-1/sandbox- deleted it",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWhereabouts(nil, small)
			w.unmakings, of.unreserved = tt.dels, tt.unreserved
			if got := w.lost(finding{at: second(20), of: of, what: tt.what}, tt.released); got != tt.want {
				t.Errorf("excuse %q, want %q", got, tt.want)
			}
		})
	}
}

// Two pods with one address are a violation, unless the plugin lost the
// reservation of the first, or made none for the second, and they are of different
// ranges.
func TestAddressGivenTwice(t *testing.T) {
	for _, tt := range []struct {
		name       string
		unreserved [2]bool
		place      int // of the second
		excused    bool
	}{
		{"in the other range", [2]bool{}, 1, false},
		{"in the other range, without a reservation in the way", [2]bool{true, false}, 1, true},
		{"in the other range, without a look for one", [2]bool{false, true}, 1, true},
		{"in the same range", [2]bool{true, false}, 0, false},
		{"in the same range, without a look for one", [2]bool{false, true}, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStorm(nil, newWhereabouts(nil, small), small, nil)
			first, second := settler("web-0", 0), settler("web-1", tt.place)
			first.unreserved, second.unreserved = tt.unreserved[0], tt.unreserved[1]
			s.roster.arrived(first)
			s.roster.arrived(second)
			s.judge()
			if got := len(s.tally.shared) == 1 && len(s.tally.violations) == 0; got != tt.excused {
				t.Errorf("excused %q, violations %q", s.tally.shared, s.tally.violations)
			}
			if len(s.tally.shared)+len(s.tally.violations) != 1 {
				t.Errorf("%d and %d findings, want one", len(s.tally.shared), len(s.tally.violations))
			}
		})
	}
}

// What is owed is looked for with the pods that are there before and after, and with no
// other; and a tombstone is no loss as long as a reaper runs.
func TestCheckOfAView(t *testing.T) {
	i := newWhereabouts(nil, small)
	s := settler("web-0", 0)
	reservation := fact{kindReservation, "10.60.0.5"}
	entry := fact{kindEntry, "10.60.0.0-27 10.60.0.5"}
	whole := func(change func(view)) view {
		v := view{owners: i.owed(s), retiring: map[fact]string{}}
		change(v)
		return v
	}
	bury := func(owner string) view {
		return whole(func(v view) { v.owners[reservation], v.retiring[reservation] = tombstone, owner })
	}
	for _, tt := range []struct {
		name  string
		view  view
		quiet bool
		gone  bool // before the look has ended
		want  []fact
	}{
		{name: "all is there", view: whole(func(view) {})},
		{name: "nothing is there", view: view{}, want: []fact{reservation, entry}},
		{name: "nothing is there, and the pod is about to go", view: view{}, gone: true},
		{name: "the entry is another sandbox's", view: whole(func(v view) { v.owners[entry] = "storm/web-0 net1 another" }), want: []fact{entry}},
		{name: "the reservation is another pod's", view: whole(func(v view) { v.owners[reservation] = "storm/web-1" }), want: []fact{reservation}},
		{name: "a tombstone", view: bury("storm/web-0")},
		{name: "a tombstone of another pod", view: bury("storm/web-1"), want: []fact{reservation}},
		{name: "a tombstone that stayed", view: bury("storm/web-0"), quiet: true, want: []fact{reservation}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			roster := newRoster()
			roster.arrived(s)
			before := roster.there()
			if tt.gone {
				roster.leaves(s)
			}
			roster.check(i, before, tt.view, tt.quiet)
			roster.check(i, before, tt.view, tt.quiet) // tells nothing twice
			got, want := map[fact]bool{}, map[fact]bool{}
			for _, f := range roster.all() {
				got[f.what] = true
			}
			for _, f := range tt.want {
				want[f] = true
			}
			if diff := cmp.Diff(want, got); diff != "" || len(roster.all()) != len(tt.want) {
				t.Errorf("%d findings, of (-want +got):\n%s", len(roster.all()), diff)
			}
		})
	}
}
