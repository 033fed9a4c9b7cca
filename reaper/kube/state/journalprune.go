package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// Prune implements journal.Store. It orders the runs by the API server's clock, and stops at
// the first part that it cannot delete.
//
// It deletes only ConfigMaps that are parts of journals by their labels, names and data, and
// that are still as listed. Its error names those that are not parts.
func (j *Journals) Prune(ctx context.Context) error {
	if j.run == "" {
		return nil
	}
	parts, err := j.all(ctx)
	if err != nil {
		return err
	}
	runs, partsOf, foreign := byRun(parts)
	expired, ok := j.retention.Expired(runs, j.run)
	if !ok {
		return fmt.Errorf("%w of the current run %s: another client deleted it", journal.ErrNone, j.run)
	}
	for _, run := range expired {
		for _, p := range partsOf[run] {
			if err := j.remove(ctx, p.Name, p.uid, p.version); err != nil && !errors.Is(err, errReplaced) {
				return fmt.Errorf("remove the journal of run %s: %s: %w", run, p.Name, err)
			}
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	return fmt.Errorf("ConfigMaps with the label %s that ip-reaper did not write were left (delete them, or remove the label): %s",
		JournalLabel, journal.Some(foreign))
}

// byRun returns the runs with their parts, and the names of ConfigMaps that are not parts. A run
// began when its first part was created, by the API server's clock.
func byRun(parts []storedPart) (runs []journal.Stored, partsOf map[string][]storedPart, foreign []string) {
	partsOf = make(map[string][]storedPart)
	for _, p := range parts {
		if p.Err != nil {
			foreign = append(foreign, fmt.Sprintf("%s (%v)", p.Name, p.Err))
			continue
		}
		partsOf[p.Run.ID] = append(partsOf[p.Run.ID], p)
	}
	for id, parts := range partsOf {
		run := journal.Stored{Run: id, Began: parts[0].At, Objects: len(parts)}
		for _, p := range parts {
			run.Size += p.size
			if p.At.Before(run.Began) {
				run.Began = p.At
			}
		}
		runs = append(runs, run)
	}
	return runs, partsOf, foreign
}
