package nodestate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// Prune implements reaper.Journals. It orders the runs by their beginnings. It removes only
// regular files whose names are those of journals, the oldest first.
func (j *Journals) Prune(ctx context.Context) error {
	if j.run == "" {
		return nil
	}
	runs, err := j.runs()
	if err != nil {
		return fmt.Errorf("list the journals: %w", err)
	}
	own := slices.IndexFunc(runs, func(r storedRun) bool { return r.id == j.run })
	if own < 0 {
		return fmt.Errorf("%w of the current run %s: another process removed it", reaper.ErrNoJournal, j.run)
	}
	stored := make([]journal.Stored, len(runs))
	for i, r := range runs {
		stored[i] = journal.Stored{Began: r.began, Size: int(r.size)}
	}
	folder, err := j.open()
	if err != nil {
		return err
	}
	defer folder.Close()
	for _, i := range j.retention.Expired(stored, own) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := remove(folder, runs[i].id+journalEnd); err != nil {
			return errors.Join(fmt.Errorf("remove the journal of run %s: %w", runs[i].id, err), syncFolder(folder))
		}
	}
	return syncFolder(folder)
}
