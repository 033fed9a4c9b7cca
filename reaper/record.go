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
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// journal writes the records of the plan's orphans. It returns the plan without those
// that are not in the journal.
func (r *run) journal(ctx context.Context, plan judge.Plan) judge.Plan {
	if len(plan.Due) == 0 {
		return plan
	}
	stored := make(map[int]json.RawMessage, len(plan.Due))
	recorded := make(map[int]bool, len(plan.Due))
	for _, b := range r.Backends {
		due := plan.Of(b.Name())
		if len(due) == 0 {
			continue
		}
		answers, err := record(ctx, b, plan, due)
		if err != nil {
			r.fail(fmt.Errorf("%s: record allocations before their release: %w", b.Name(), err))
		}
		for n, i := range due {
			switch {
			case err != nil:
				r.settle(i, report.Failed, fmt.Errorf("it is not in the journal: %w", err))
			case len(answers[n]) == 0:
				r.settle(i, report.Changed, fmt.Errorf("%w, or is gone, before it was recorded", ipam.ErrChanged))
			default:
				stored[i], recorded[i] = answers[n], true
			}
		}
	}
	r.dropGroups(plan, recorded)
	plan = plan.Only(recorded)
	return r.writeJournal(ctx, plan, stored)
}

// writeJournal writes one record for each orphan of the plan. It returns the plan without
// the orphans whose records the journal cannot store.
func (r *run) writeJournal(ctx context.Context, plan judge.Plan, stored map[int]json.RawMessage) judge.Plan {
	if r.recorded.ID == "" { // all parts of a journal must describe the run alike
		r.recorded = journal.Run{ID: r.info.ID, StartedAt: r.info.StartedAt, Version: r.info.Version, Cluster: r.info.Place(), By: r.By}
		if r.ClusterUID != nil {
			r.recorded.ClusterUID = r.ClusterUID(ctx)
		}
	}
	for len(plan.Due) > 0 {
		err := r.Journals.Write(ctx, r.recorded, r.records(plan, stored))
		if err == nil {
			return plan
		}
		var unfit *journal.UnfitError
		if errors.As(err, &unfit) {
			if fitting := r.dropUnfit(plan, unfit); len(fitting.Due) < len(plan.Due) {
				plan = fitting
				continue
			}
		}
		r.failAndWarn(fmt.Errorf("nothing is released without a journal: %w", err))
		for _, i := range plan.Due {
			r.settle(i, report.Failed, fmt.Errorf("it is not in the journal: %w", err))
		}
		return plan.Only(nil)
	}
	return plan
}

// dropUnfit returns the plan without the orphans whose records the journal cannot store,
// and without their siblings.
func (r *run) dropUnfit(plan judge.Plan, unfit *journal.UnfitError) judge.Plan {
	fits := make(map[int]bool, len(plan.Due))
	for n, i := range plan.Due {
		err := unfit.Records[n]
		if err == nil {
			fits[i] = true
			continue
		}
		r.settle(i, report.Failed, fmt.Errorf("it is not in the journal: %w", err))
		r.fail(fmt.Errorf("%s: not released: %w", plan.Decisions[i].Allocation.Backend, err))
	}
	r.dropGroups(plan, fits)
	return plan.Only(fits)
}

// records returns one record for each orphan of the plan. The stored data is by index.
func (r *run) records(plan judge.Plan, stored map[int]json.RawMessage) []ipam.Record {
	records := make([]ipam.Record, len(plan.Due))
	for n, i := range plan.Due {
		a, last, e := plan.Decisions[i].Allocation, plan.Decisions[i].LastSeen(), r.report.Entries[i]
		records[n] = ipam.Record{
			Backend: a.Backend, Pool: a.Pool, Key: a.Key, IP: e.IP, Owner: e.Owner,
			Node: last.Node, Boot: last.Boot, Mirror: last.Mirror, Stored: stored[i],
		}
	}
	return records
}

// record asks the backend for the stored data of its orphans, one for each of the
// indices.
func record(ctx context.Context, b ipam.Backend, plan judge.Plan, due []int) ([]json.RawMessage, error) {
	allocations := make([]ipam.Allocation, len(due))
	for n, i := range due {
		allocations[n] = *plan.Decisions[i].Allocation
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

// dropGroups removes an allocation from the recorded ones if one of its siblings is not
// recorded. A group is released together or not at all.
func (r *run) dropGroups(plan judge.Plan, recorded map[int]bool) {
	broken := make(map[string]bool)
	for _, i := range plan.Due {
		if a := plan.Decisions[i].Allocation; !recorded[i] && a.Group != "" {
			broken[a.Group] = true
		}
	}
	for _, i := range plan.Due {
		if a := plan.Decisions[i].Allocation; recorded[i] && broken[a.Group] {
			delete(recorded, i)
			r.settle(i, report.Kept, fmt.Errorf("%w: a sibling is not in the journal", ipam.ErrKept))
		}
	}
}
