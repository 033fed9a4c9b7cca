package reaper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// notInJournal says why the siblings of what is not in the journal are kept.
const notInJournal = "a sibling is not in the journal"

// writeJournal writes the records of what is due. What is not in the journal is decided after that.
func (r *run) writeJournal(ctx context.Context, attempts []*attempt) {
	for _, b := range r.Backends {
		copyStored(ctx, r.messages, b, undecided(ofBackend(attempts, b.Name())))
	}
	settleSiblings(r.logger, attempts, notInJournal)
	open := undecided(attempts)
	if len(open) > 0 && r.recorded.ID == "" { // all parts of a journal must describe the run alike
		r.recorded = journal.Run{ID: r.info.ID, StartedAt: r.info.StartedAt, Version: r.info.Version, Cluster: r.info.Place(), By: r.By}
		if r.ClusterUID != nil {
			r.recorded.ClusterUID = r.ClusterUID(ctx)
		}
	}
	for len(open) > 0 {
		err := r.Journals.Write(ctx, r.recorded, records(open))
		if err == nil {
			return
		}
		var unfit *journal.UnfitError
		if errors.As(err, &unfit) {
			settleUnfit(r.messages, open, unfit)
			settleSiblings(r.logger, attempts, notInJournal)
			if fitting := undecided(open); len(fitting) < len(open) {
				open = fitting
				continue
			}
		}
		r.failAndWarn(fmt.Errorf("nothing is released without a journal: %w", err))
		failAll(ctx, r.logger, open, fmt.Errorf("it is not in the journal: %w", err))
		return
	}
}

// copyStored asks a backend for the data that the records of its orphans need.
func copyStored(ctx context.Context, m *messages, b ipam.Backend, due []*attempt) {
	if len(due) == 0 {
		return
	}
	stored, err := storedOf(ctx, b, due)
	if err != nil {
		m.fail(fmt.Errorf("%s: record allocations before their release: %w", b.Name(), err))
		failAll(ctx, m.logger, due, fmt.Errorf("it is not in the journal: %w", err))
		return
	}
	for i, a := range due {
		if a.stored = stored[i]; len(a.stored) == 0 {
			a.settle(m.logger, report.Changed, fmt.Errorf("%w, or is gone, before it was recorded", ipam.ErrChanged))
		}
	}
}

// storedOf asks the backend for the stored data of its orphans, one for each.
func storedOf(ctx context.Context, b ipam.Backend, due []*attempt) ([]json.RawMessage, error) {
	allocations := make([]ipam.Allocation, len(due))
	for i, a := range due {
		allocations[i] = *a.allocation()
	}
	var stored []json.RawMessage
	backoff := retry.WithMaxRetries(4, retry.NewExponential(100*time.Millisecond))
	err := retry.Do(ctx, backoff, func(ctx context.Context) (err error) {
		if stored, err = b.Record(ctx, allocations); errors.Is(err, ipam.ErrAgain) {
			return retry.RetryableError(err)
		}
		return err
	})
	if err == nil && len(stored) != len(allocations) {
		err = ipam.ErrNoAnswer
	}
	return stored, err
}

// records returns one record for each attempt.
func records(due []*attempt) []ipam.Record {
	records := make([]ipam.Record, len(due))
	for i, at := range due {
		a, last := at.allocation(), at.decision.LastSeen()
		records[i] = ipam.Record{
			Backend: a.Backend, Pool: a.Pool, Key: a.Key, Owner: a.Owner.Entry(),
			Node: last.Node, Boot: last.Boot, Mirror: last.Mirror, Stored: at.stored,
		}
		if a.IP.IsValid() {
			records[i].IP = a.IP.String()
		}
	}
	return records
}

// settleUnfit decides on what the journal cannot store.
func settleUnfit(m *messages, due []*attempt, unfit *journal.UnfitError) {
	for i, a := range due {
		if err := unfit.Records[i]; err != nil {
			a.settle(m.logger, report.Failed, fmt.Errorf("it is not in the journal: %w", err))
			m.fail(fmt.Errorf("%s: not released: %w", a.allocation().Backend, err))
		}
	}
}
