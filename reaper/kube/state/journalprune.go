package state

import (
	"context"
	"fmt"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// Prune implements journal.Store. It orders the runs by the API server's clock, and
// stops at the first part that the API server does not let it delete.
//
// It deletes only ConfigMaps that are parts of journals by their labels, names and data,
// and only as they were listed. It leaves all others, and its error names them.
func (j *Journals) Prune(ctx context.Context) error {
	if j.run == "" {
		return nil
	}
	runs, left, err := j.runs(ctx)
	if err != nil {
		return fmt.Errorf("list the journals: %w", err)
	}
	own := slices.IndexFunc(runs, func(r storedRun) bool { return r.id == j.run })
	if own < 0 {
		return fmt.Errorf("%w of the current run %s: another client deleted it", journal.ErrNone, j.run)
	}
	for _, r := range expired(j.retention, runs, own) {
		for _, p := range r.parts {
			if err := j.remove(ctx, p.name, p.uid, p.version); err != nil {
				return fmt.Errorf("remove the journal of run %s: %s: %w", r.id, p.name, err)
			}
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("ConfigMaps with the label %s that ip-reaper did not write were left (delete them, or remove the label): %s",
		JournalLabel, journal.Some(left))
}

// expired returns the runs whose journals are not kept, the oldest first. runs has the latest
// first, and the current run by the index own. The times are by the API server's clock.
func expired(r journal.Retention, runs []storedRun, own int) []storedRun {
	stored := make([]journal.Stored, len(runs))
	for i, run := range runs {
		stored[i].Began = run.began
		for _, p := range run.parts {
			stored[i].Size += p.size
		}
	}
	var gone []storedRun
	for _, i := range r.Expired(stored, own) {
		gone = append(gone, runs[i])
	}
	return gone
}
