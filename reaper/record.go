package reaper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sethvargo/go-retry"
)

// errNoRecorder is a backend whose releases could not be undone.
var errNoRecorder = errors.New("the backend cannot put back what it releases")

// journal writes down what the plan releases, and returns the plan without what
// could not be written down.
func (r *run) journal(ctx context.Context, plan Plan) Plan {
	if len(plan.due) == 0 {
		return plan
	}
	stored := make(map[int]json.RawMessage, len(plan.due))
	recorded := make(map[int]bool, len(plan.due))
	for _, b := range r.Backends {
		due := plan.of(b.Name())
		if len(due) == 0 {
			continue
		}
		answers, err := record(ctx, b, plan, due)
		if err != nil {
			r.fail(fmt.Errorf("%s: write down what is to be released: %w", b.Name(), err))
		}
		for n, i := range due {
			switch {
			case err != nil:
				r.settle(i, Failed, fmt.Errorf("it is not in the journal: %w", err))
			case len(answers[n]) == 0:
				r.settle(i, Changed, fmt.Errorf("%w, or is gone, before it was written down", ErrChanged))
			default:
				stored[i], recorded[i] = answers[n], true
			}
		}
	}
	r.dropGroups(plan, recorded)
	plan = plan.only(recorded)
	if len(plan.due) == 0 {
		return plan
	}
	run := JournalRun{ID: r.info.ID, StartedAt: r.info.StartedAt, Version: r.info.Version, Cluster: r.info.Cluster}
	if err := r.Journals.Write(ctx, run, r.records(plan, stored)); err != nil {
		r.failAndTell(fmt.Errorf("no journal, no release: %w", err))
		for _, i := range plan.due {
			r.settle(i, Failed, fmt.Errorf("it is not in the journal: %w", err))
		}
		return plan.only(nil)
	}
	return plan
}

// records returns what the plan releases as it is stored, by index.
func (r *run) records(plan Plan, stored map[int]json.RawMessage) []Record {
	records := make([]Record, len(plan.due))
	for n, i := range plan.due {
		res, e := plan.decisions[i].Allocation, r.report.Entries[i]
		records[n] = Record{Backend: res.Backend, Pool: res.Pool, Key: res.Key, IP: e.IP, Owner: e.Owner, Stored: stored[i]}
	}
	return records
}

// record asks the backend for as many records as there are entries.
func record(ctx context.Context, b Backend, plan Plan, due []int) ([]json.RawMessage, error) {
	recorder, ok := b.(Recorder)
	if !ok {
		return nil, errNoRecorder
	}
	rs := make([]Allocation, len(due))
	for n, i := range due {
		rs[n] = plan.decisions[i].Allocation
	}
	var stored []json.RawMessage
	backoff := retry.WithMaxRetries(4, retry.NewExponential(100*time.Millisecond))
	err := retry.Do(ctx, backoff, func(ctx context.Context) (err error) {
		if stored, err = recorder.Record(ctx, rs); errors.Is(err, ErrAgain) {
			return retry.RetryableError(err)
		}
		return err
	})
	if err == nil && len(stored) != len(rs) {
		err = errNoAnswer
	}
	return stored, err
}

// dropBonds takes out what is bound to an entry that is not written down: they go
// together or not at all.
func (r *run) dropGroups(plan Plan, recorded map[int]bool) {
	broken := make(map[[2]string]bool)
	for _, i := range plan.due {
		if res := plan.decisions[i].Allocation; !recorded[i] && res.Group != "" {
			broken[[2]string{res.Backend, res.Group}] = true
		}
	}
	for _, i := range plan.due {
		if res := plan.decisions[i].Allocation; recorded[i] && broken[[2]string{res.Backend, res.Group}] {
			delete(recorded, i)
			r.settle(i, Kept, fmt.Errorf("%w: another address of its sandbox is not in the journal", ErrKept))
		}
	}
}
