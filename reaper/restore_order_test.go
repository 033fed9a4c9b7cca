package reaper_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A restoreLog is a backend that notes the records of each Restore.
type restoreLog struct {
	ipam.Backend
	calls *[][]string
}

func (l restoreLog) Restore(ctx context.Context, pool string, records []ipam.Record) []error {
	var keys []string
	for _, r := range records {
		keys = append(keys, r.Key)
	}
	*l.calls = append(*l.calls, keys)
	return l.Backend.Restore(ctx, pool, records)
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
				o.Backends = append(o.Backends, restoreLog{b, &calls})
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
		o.Backends = []ipam.Backend{restoreLog{r.backends[0], &calls}, r.backends[1]}
	})
	equal(t, "records", rep.Summary.Records, 3)
	equal(t, "calls", calls, [][]string{{"2"}, {"3"}})
	r.wantRestored(t)
}

// A lossyRestore is a backend that loses its first answer to a Restore.
type lossyRestore struct {
	ipam.Backend
	lost *bool
}

func (l lossyRestore) Restore(ctx context.Context, pool string, records []ipam.Record) []error {
	errs := l.Backend.Restore(ctx, pool, records)
	if !*l.lost {
		*l.lost = true
		return slices.Repeat([]error{fmt.Errorf("%w: %w", ipam.ErrAgain, ipam.ErrLost)}, len(records))
	}
	return errs
}

// Promise 7. What an attempt with a lost answer put back was not there before.
func TestRestoreWhoseAnswerIsLostIsNoneThatWasThere(t *testing.T) {
	r := newReleasedHarness(t)
	rep := r.restore(t, func(o *reaper.RestoreOptions) {
		o.Backends = []ipam.Backend{lossyRestore{r.backends[0], new(bool)}, r.backends[1]}
	})
	equal(t, "summary", rep.Summary, report.RestoreCounts{Records: 3, Restored: 3})
	r.wantRestored(t)
}
