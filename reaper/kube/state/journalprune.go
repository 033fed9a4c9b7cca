package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// A storedRun is a run with a journal. It began when its first part was created, by the API
// server's clock.
type storedRun struct {
	id string
	journal.Stored
	parts []storedPart
}

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
	runs, foreign := byRun(parts)
	own := slices.IndexFunc(runs, func(r storedRun) bool { return r.id == j.run })
	if own < 0 {
		return fmt.Errorf("%w of the current run %s: another client deleted it", journal.ErrNone, j.run)
	}
	stored := make([]journal.Stored, len(runs))
	for i, r := range runs {
		stored[i] = r.Stored
	}
	for _, i := range j.retention.Expired(stored, own) {
		for _, p := range runs[i].parts {
			if err := j.remove(ctx, p.Name, p.uid, p.version); err != nil && !errors.Is(err, errReplaced) {
				return fmt.Errorf("remove the journal of run %s: %s: %w", runs[i].id, p.Name, err)
			}
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	return fmt.Errorf("ConfigMaps with the label %s that ip-reaper did not write were left (delete them, or remove the label): %s",
		JournalLabel, journal.Some(foreign))
}

// byRun returns the runs of the parts, latest first, and the names of ConfigMaps that are not
// parts.
func byRun(parts []storedPart) (runs []storedRun, foreign []string) {
	index := make(map[string]int)
	for _, p := range parts {
		if p.Err != nil {
			foreign = append(foreign, fmt.Sprintf("%s (%v)", p.Name, p.Err))
			continue
		}
		i, known := index[p.Run.ID]
		if !known {
			i = len(runs)
			index[p.Run.ID] = i
			runs = append(runs, storedRun{id: p.Run.ID, Stored: journal.Stored{Began: p.At}})
		}
		r := &runs[i]
		r.parts, r.Objects, r.Size = append(r.parts, p), r.Objects+1, r.Size+p.size
		if p.At.Before(r.Began) {
			r.Began = p.At
		}
	}
	slices.SortFunc(runs, func(a, b storedRun) int {
		return cmp.Or(b.Began.Compare(a.Began), cmp.Compare(b.id, a.id)) // an ID begins with its time
	})
	return runs, foreign
}
