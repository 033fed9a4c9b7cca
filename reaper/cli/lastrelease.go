package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/judge"
	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// mostJournals is in how many journals a released address is looked for.
const mostJournals = 50

// addLastRelease adds which of the last runs released the address in question, or those of the pod, if
// nothing uses them. A warning says that the journals cannot be read or, if no store has them, that files
// have none: then the connection is zero.
func addLastRelease(ctx context.Context, conn connection, x *report.Explanation) {
	used := len(x.Claims)+len(x.Asking) > 0 || slices.ContainsFunc(x.Found, func(e report.Explained) bool { return e.Verdict == judge.InUse })
	if q := x.Question; q.Address+q.Pod+q.Name == "" || used || conn.journals == nil && len(x.Found) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, conn.Timeout)
	defer cancel()
	err := errors.New("files have no journals")
	if conn.journals != nil {
		x.LastRelease, err = lastRelease(ctx, conn, x.Question)
	}
	if err != nil {
		x.Warnings = append(x.Warnings, printable.Shorten("whether a run released it is unknown: "+oneLine(err), printable.MaxText))
	}
}

// lastRelease returns the latest run whose journal has what is asked about, with its allocations; nil if
// none has. With an error, it has what could be read.
func lastRelease(ctx context.Context, conn connection, q report.Question) (*journal.PastRun, error) {
	runs, unread, err := conn.journals.List(ctx)
	for _, text := range unread {
		err = errors.Join(err, errors.New(text))
	}
	for _, past := range runs[:min(len(runs), mostJournals)] {
		read, damage := conn.journals.Read(ctx, past.ID)
		if damage != nil && !errors.Is(damage, journal.ErrNone) { // another run may have pruned it
			err = errors.Join(err, damage)
		}
		if ctx.Err() != nil {
			break
		}
		run := journal.PastOf(read)
		run.Journal = nil
		run.Entries = slices.DeleteFunc(run.Entries, func(e journal.RecordedEntry) bool { return !q.Recorded(e) })
		if len(run.Entries) == 0 {
			continue
		}
		memory, unread := conn.Ledgers.Load(ctx)
		for _, one := range withResults([]journal.PastRun{run}, memory.Runs) {
			if one.ID == run.ID {
				return &one, errors.Join(err, unread)
			}
		}
	}
	return nil, err
}
