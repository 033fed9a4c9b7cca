package reaper_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/census"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// An answeringStore is a fixedStore that gives every release the same answer.
type answeringStore struct {
	fixedStore
	answer error
}

func (s answeringStore) Release(_ context.Context, ws []ipam.Warrant) []error {
	errs := make([]error, len(ws))
	for i := range errs {
		errs[i] = s.answer
	}
	return errs
}

// Promise 9. The figures of the pools say the same as the bottom line.
func TestAddressThatChangedHandsIsNotLeakedInItsPool(t *testing.T) {
	for _, tt := range []struct {
		answer              error
		leaked, live, other int
	}{
		{ipam.ErrKept, 1, 0, 0},
		{ipam.ErrReturned, 0, 1, 0},
		{ipam.ErrChanged, 0, 0, 1},
	} {
		pool := poolOf(webAllocation())
		pool.Range = netip.MustParsePrefix("10.0.0.0/24")
		h := newHarness(answeringStore{fixedStore{pool}, tt.answer})
		h.pods.Add(census.Pod{Ref: other})
		report, _ := reaper.Run(t.Context(), h.options())
		u := report.Pools[0].Usage
		equal(t, "leaked after "+tt.answer.Error(), u.Leaked, tt.leaked)
		equal(t, "leaked by the bottom line", report.Leaked.Total, tt.leaked)
		equal(t, "live", u.Live, tt.live)
		equal(t, "other", u.Other, tt.other)
	}
}
