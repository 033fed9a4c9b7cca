package journal

import (
	"context"
	"errors"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Both keeps a journal in two places. Write fails unless both places have the records,
// so that nothing is released without a record in each. Both places must take the same
// records: if only the second one returns a *reaper.UnfitError, the first one has written.
type Both [2]reaper.Journals

// Write implements reaper.Journals.
func (b Both) Write(ctx context.Context, run reaper.JournalRun, records []reaper.Record) error {
	for _, j := range b {
		if err := j.Write(ctx, run, records); err != nil {
			return err
		}
	}
	return nil
}

// Prune implements reaper.Journals.
func (b Both) Prune(ctx context.Context) error {
	return errors.Join(b[0].Prune(ctx), b[1].Prune(ctx))
}
