package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// The most that Retention.KeepFor keeps: a run each minute that releases would otherwise
// leave 10,080 journals in a week. The bytes are those of the compressed data. By default,
// etcd holds 2 GiB in all.
const (
	maxJournals     = 1000
	maxJournalBytes = 64 << 20
)

// maxLeftNamed is the largest number of ConfigMaps without a journal that an error names.
const maxLeftNamed = 10

// A Retention says which journals Prune keeps. It keeps a journal that satisfies either
// field. The zero Retention keeps the journal of the current run only.
type Retention struct {
	Runs int           // the journals of that many runs, the current one included
	For  time.Duration // younger journals, up to maxJournals and maxJournalBytes
}

// Prune implements reaper.Journals. It orders the runs by the API server's clock, and
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
		return fmt.Errorf("%w of the current run %s: another client deleted it", reaper.ErrNoJournal, j.run)
	}
	for _, r := range j.retention.expired(runs, own) {
		for _, p := range r.parts {
			err := j.remove(ctx, p.name, p.uid, p.version)
			switch {
			case errors.Is(err, errReplaced):
				left = append(left, fmt.Sprintf("%s (%v)", p.name, err))
			case err != nil:
				return fmt.Errorf("remove the journal of run %s: %s: %w", r.id, p.name, err)
			}
		}
	}
	return leftAlone(left)
}

// leftAlone returns the error that names ConfigMaps, or nil if there are none.
func leftAlone(names []string) error {
	if len(names) == 0 {
		return nil
	}
	more := ""
	if n := len(names) - maxLeftNamed; n > 0 {
		names, more = names[:maxLeftNamed], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("ConfigMaps with the label %s that ip-reaper did not write were left (delete them, or remove the label): %s%s",
		JournalLabel, strings.Join(names, ", "), more)
}

// expired returns the runs whose journals are not kept, the oldest first. runs has the latest
// first, and the current run by the index own. A journal is as old as the time from its
// beginning to that of the current one, both by the API server's clock.
func (r Retention) expired(runs []storedRun, own int) []storedRun {
	var expired []storedRun
	bytes := 0
	for i, run := range runs {
		for _, p := range run.parts {
			bytes += p.size
		}
		young := runs[own].began.Sub(run.began) < r.For
		if i <= own || i < r.Runs || young && i < maxJournals && bytes <= maxJournalBytes {
			continue
		}
		expired = append(expired, run)
	}
	slices.Reverse(expired)
	return expired
}
