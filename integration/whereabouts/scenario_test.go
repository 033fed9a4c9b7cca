package whereabouts_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/integration/kit/reap"
)

// A scenario is the store and the pods when the reaper runs, and what the reaper must then report
// and do.
type scenario struct {
	name   string
	policy string // added to one that releases immediately
	set    func(f *fixture)

	// want has a line for each allocation, in any order:
	//
	//	POOL/KEY     IP POD VERDICT REASON OUTCOME
	//	RESERVATION  IP POD VERDICT REASON OUTCOME
	//
	// Afterwards the store must hold what it held before, byte for byte, except for the lines that
	// end with released.
	want []string

	then func(f *fixture) // further checks; may be nil
}

// play runs each scenario in an emptied cluster.
func play(t *testing.T, scenarios []scenario) {
	t.Helper()
	for _, tt := range scenarios {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			tt.set(f)
			before := f.store()
			got := f.mustReap(reap.ExitDone, tt.policy)
			f.wantLines(tt.want, got.lines)
			f.wantStore(before.without(got.lines))
			if tt.then != nil {
				tt.then(f)
			}
		})
	}
}

// wantLines compares the lines of a report with those wanted.
func (f *fixture) wantLines(want, got []string) {
	f.Helper()
	want = slices.Sorted(slices.Values(want))
	if len(want) == 0 && len(got) == 0 {
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("report (-want +got):\n%s", diff)
	}
}

// both returns the lines of an address with an entry in a pool and a reservation, which usually
// share their fate.
func both(entry, reservation, rest string) []string {
	return []string{entry + " " + rest, reservation + " " + rest}
}
