package nodestate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

const (
	journalsName = "journals"
	journalEnd   = ".jsonl"
)

// Journals keeps the journal of one run in a file, beside the files of earlier runs. It
// implements reaper.Journals. Its methods are for one goroutine.
type Journals struct {
	folder    *Folder
	retention journal.Retention
	run       string        // the ID, once something was written
	file      *journal.File // nil before a Write
}

// Journals returns the journals of the folder. The caller must Close them.
func (f *Folder) Journals(r journal.Retention) *Journals { return &Journals{folder: f, retention: r} }

// Write implements reaper.Journals. It makes the folders if there are none. When it returns
// nil, the records are on the disk. After an error that is no *reaper.UnfitError, and that
// of a journal that has records, every later Write fails.
func (j *Journals) Write(ctx context.Context, run reaper.JournalRun, records []reaper.Record) error {
	if err := ctx.Err(); err != nil || len(records) == 0 {
		return err
	}
	if j.file == nil {
		if err := j.create(run.ID); err != nil {
			return err
		}
	}
	if err := j.file.Write(ctx, run, records); err != nil {
		err = fmt.Errorf("%s: %w", j.folder.at(journalsName, run.ID+journalEnd), err)
		if j.run == "" {
			err = errors.Join(err, j.takeBack(run.ID))
		}
		return err
	}
	j.run = run.ID
	return nil
}

// create makes the file of a run.
func (j *Journals) create(run string) error {
	if !journal.IsRunID(run) {
		return fmt.Errorf("%.80q is not the ID of a run", run)
	}
	root, err := j.folder.openOrMake()
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Mkdir(journalsName, 0o700); err == nil {
		err = syncFolder(root)
		if err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return badPlace(fmt.Errorf("%s: %w", j.folder.at(journalsName), err), j.folder.path)
	}
	folder, err := j.open()
	if err != nil {
		return err
	}
	defer folder.Close()
	j.file, err = journal.Create(j.folder.at(journalsName, run+journalEnd))
	return err
}

// takeBack removes the file of a run that has written nothing.
func (j *Journals) takeBack(run string) error {
	err := errors.Join(j.file.Close(), os.Remove(j.folder.at(journalsName, run+journalEnd)))
	j.file = nil
	return err
}

// Close closes the file of the run. It does nothing before a Write.
func (j *Journals) Close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

// open opens the folder of the journals, which must be as Folder.Check wants it. The error
// wraps fs.ErrNotExist if it does not exist.
func (j *Journals) open() (*os.Root, error) {
	root, err := j.folder.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	path := j.folder.at(journalsName)
	folder, err := openFolder(path, journalsName, root.Lstat, root.OpenRoot)
	if err != nil {
		return nil, badPlace(err, path)
	}
	return folder, nil
}

// runOf returns the ID of the run whose journal is in a file of that name.
func runOf(name string) (id string, ok bool) {
	id, ok = strings.CutSuffix(name, journalEnd)
	return id, ok && journal.IsRunID(id)
}
