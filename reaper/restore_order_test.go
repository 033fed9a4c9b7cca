package reaper_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A restoring backend has its own Restore.
type restoring struct {
	ipam.Backend
	restore func(ctx context.Context, pool string, rs []ipam.Record, permit ipam.Permit) []error
}

func (r restoring) Restore(ctx context.Context, pool string, rs []ipam.Record, permit ipam.Permit) []error {
	return r.restore(ctx, pool, rs, permit)
}

// logged returns the backend, and notes the keys of each Restore that may write.
func logged(b ipam.Backend, calls *[][]string) ipam.Backend {
	return restoring{b, func(ctx context.Context, pool string, rs []ipam.Record, permit ipam.Permit) []error {
		var keys []string
		for _, r := range rs {
			keys = append(keys, r.Key)
		}
		if permit() == nil {
			*calls = append(*calls, keys)
		}
		return b.Restore(ctx, pool, rs, permit)
	}}
}

// A run with two rounds recorded its last releases at a time when the first ones were
// gone. So the last ones are restored first.
func TestLastWriteOfTheJournalIsRestoredFirst(t *testing.T) {
	for _, tt := range []struct {
		writes []int
		want   [][]string
	}{
		{nil, [][]string{{"10.1.0.2"}, {"2", "3"}}},
		{[]int{3}, [][]string{{"10.1.0.2"}, {"2", "3"}}},
		{[]int{1, 2}, [][]string{{"10.1.0.2"}, {"3"}, {"2"}}},
		{[]int{2, 1}, [][]string{{"10.1.0.2"}, {"2", "3"}}},
	} {
		r := newReleasedHarness(t)
		var calls [][]string
		r.restore(t, func(o *reaper.RestoreOptions) {
			o.Journal.Writes = tt.writes
			o.Backends = nil
			for _, b := range r.backends {
				o.Backends = append(o.Backends, logged(b, &calls))
			}
		})
		equal(t, "calls", calls, tt.want)
		r.wantRestored(t)
	}
}

// If two rounds wrote the same record, at most the second one released the allocation.
func TestRecordThatIsThereTwiceBelongsToTheLastWrite(t *testing.T) {
	r := newReleasedHarness(t)
	var calls [][]string
	rep := r.restore(t, func(o *reaper.RestoreOptions) {
		o.Journal.Records = append(o.Journal.Records, o.Journal.Records[0])
		o.Journal.Writes = []int{3, 1}
		o.Backends = []ipam.Backend{logged(r.backends[0], &calls), r.backends[1]}
	})
	equal(t, "records", rep.Summary.Records, 3)
	equal(t, "calls", calls, [][]string{{"2"}, {"3"}})
	r.wantRestored(t)
}

// Promise 7. What an attempt with a lost answer put back was not there before.
func TestRestoreWhoseAnswerIsLostIsNoneThatWasThere(t *testing.T) {
	r := newReleasedHarness(t)
	first, lost := r.backends[0], false
	lossy := restoring{first, func(ctx context.Context, pool string, rs []ipam.Record, permit ipam.Permit) []error {
		errs := first.Restore(ctx, pool, rs, permit)
		if !lost && permit() == nil {
			lost = true
			return slices.Repeat([]error{fmt.Errorf("%w: %w", ipam.ErrAgain, ipam.ErrLost)}, len(rs))
		}
		return errs
	}}
	rep := r.restore(t, func(o *reaper.RestoreOptions) { o.Backends = []ipam.Backend{lossy, r.backends[1]} })
	equal(t, "summary", rep.Summary, report.RestoreCounts{Records: 3, Restored: 3})
	r.wantRestored(t)
}

// Promise 1. A request of a restore that has queued is sent only if the look at the stores is still fresh.
func TestQueuedRequestOfARestoreNeedsItsPermit(t *testing.T) {
	r := newReleasedHarness(t)
	first := r.backends[0]
	slow := restoring{first, func(ctx context.Context, pool string, rs []ipam.Record, permit ipam.Permit) []error {
		if permit() != nil {
			return first.Restore(ctx, pool, rs, permit)
		}
		r.now = r.now.Add(ipam.FreshnessNeverAdopted + time.Second)
		return slices.Repeat([]error{ipam.TurnOf(ctx).Halted()}, len(rs))
	}}
	rep, _ := r.restorePartly(t, func(o *reaper.RestoreOptions) { o.Backends = []ipam.Backend{slow, r.backends[1]} })
	equal(t, "outcomes", restoreOutcomes(rep), []string{"one/a/2 failed", "one/a/3 failed", "two/a/10.1.0.2/10.1.0.2 restored"})
	equal(t, "error", rep.Entries[0].Error, "the restore stalled, and others may have got the address: restore again")
}
