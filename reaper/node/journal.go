package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

const (
	journalsName = "journals"
	journalEnd   = ".jsonl"
)

// Journals keeps the journal of one run in a file, next to the files of earlier runs. It
// implements journal.Store. It is not safe for concurrent use.
type Journals struct {
	folder    *Folder
	retention journal.Retention
	file      *journal.File // nil before a Write
	run       string        // the ID, once something was written
}

// Journals returns the journals of the folder. The caller must Close them.
func (f *Folder) Journals(r journal.Retention) *Journals { return &Journals{folder: f, retention: r} }

// Write implements journal.Store. It makes the folders if they do not exist. When it returns
// nil, the records are on disk. After an error other than a *journal.UnfitError, every later
// Write fails.
func (j *Journals) Write(ctx context.Context, run journal.Run, records []ipam.Record) error {
	if err := ctx.Err(); err != nil || len(records) == 0 {
		return err
	}
	if j.file == nil {
		if err := j.create(run.ID); err != nil {
			return err
		}
	}
	if err := j.file.Write(ctx, run, records); err != nil {
		return fmt.Errorf("%s: %w", j.at(run.ID), err)
	}
	j.run = run.ID
	return nil
}

// at returns the path of the file of a run, for messages.
func (j *Journals) at(run string) string { return j.folder.at(journalsName, run+journalEnd) }

// create makes the file of a run. It fails if the file exists: that would be the journal of
// another run.
func (j *Journals) create(run string) error {
	if !journal.IsRunID(run) {
		return fmt.Errorf("%.80q is not the ID of a run", run)
	}
	folder, err := j.folder.open(made, journalsName)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	file, err := folder.OpenFile(run+journalEnd, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", j.at(run), err)
	}
	if err := syncFolder(folder); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", j.at(run), err), file.Close())
	}
	j.file = journal.NewFile(file)
	return nil
}

// Close closes the file of the run. It does nothing before a Write.
func (j *Journals) Close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

// stored returns the runs with a file, latest first; none if the folder does not exist. An ID
// begins with the time of its run; a run with any other ID is as old as the last write to its
// file.
func (j *Journals) stored() ([]journal.Stored, error) {
	folder, err := j.folder.open(existing, journalsName)
	if err != nil {
		return nil, unlessAbsent(err)
	}
	defer func() { _ = folder.Close() }()
	files, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		return nil, err
	}
	var runs []journal.Stored
	for _, f := range files {
		id, ok := strings.CutSuffix(f.Name(), journalEnd)
		if !ok || !journal.IsRunID(id) || !f.Type().IsRegular() {
			continue
		}
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another run removed it
		}
		if err != nil {
			return nil, err
		}
		began, err := time.Parse(timeOfID, id[:min(len(id), len(timeOfID))])
		if err != nil {
			began = info.ModTime()
		}
		runs = append(runs, journal.Stored{Run: id, Began: began, Objects: 1, Size: int(info.Size())})
	}
	slices.SortFunc(runs, journal.Latest)
	return runs, nil
}

// timeOfID is how the ID of a run begins.
const timeOfID = "20060102-150405"

// Prune implements journal.Store. It removes only regular files with the names of journals,
// oldest first.
func (j *Journals) Prune(ctx context.Context) error {
	if j.run == "" {
		return nil
	}
	runs, err := j.stored()
	if err != nil {
		return fmt.Errorf("list the journals: %w", err)
	}
	expired, ok := j.retention.Expired(runs, j.run)
	if !ok {
		return fmt.Errorf("%w of the current run %s: another process removed it", journal.ErrNone, j.run)
	}
	folder, err := j.folder.open(existing, journalsName)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	for _, run := range expired {
		if err := errors.Join(ctx.Err(), remove(folder, run+journalEnd)); err != nil {
			return fmt.Errorf("remove the journal of run %s: %w", run, err)
		}
	}
	return syncFolder(folder)
}

// Read returns the journal of a run, with the errors of journal.Find.
func (j *Journals) Read(ctx context.Context, runID string) (journal.Journal, error) {
	return journal.Find(ctx, j, runID)
}

// List returns the runs that have a journal, with the warnings of journal.PastRuns.
func (j *Journals) List(ctx context.Context) (runs []journal.PastRun, warnings []string, err error) {
	stored, err := j.stored()
	if err != nil {
		return nil, nil, fmt.Errorf("list the journals: %w", err)
	}
	var all []journal.Summary
	for _, r := range slices.Backward(stored) {
		parts, err := j.Parts(ctx, r.Run)
		if err != nil {
			return nil, nil, fmt.Errorf("list the journals: %w", err)
		}
		for _, p := range parts {
			all = append(all, journal.Summarize(r.Run, r.Began, p))
		}
	}
	runs, warnings = journal.PastRuns(all)
	return runs, warnings, nil
}

// Where implements journal.Source.
func (j *Journals) Where() string { return j.folder.at(journalsName) }

// Parts implements journal.Source.
func (j *Journals) Parts(ctx context.Context, run string) ([]journal.StoredPart, error) {
	if err := ctx.Err(); err != nil || !journal.IsRunID(run) {
		return nil, err
	}
	folder, err := j.folder.open(existing, journalsName)
	if err != nil {
		return nil, unlessAbsent(err)
	}
	defer func() { _ = folder.Close() }()
	file, err := openRegular(folder, run+journalEnd, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", j.at(run), err)
	}
	defer func() { _ = file.Close() }()
	return journal.ReadParts(j.at(run), file)
}
