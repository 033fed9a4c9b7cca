package nodestate

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// The largest numbers of runs, and of files that could not be read, that a message names.
const (
	maxRunsNamed  = 10
	maxFilesNamed = 10
)

// A storedRun is a run with a journal.
type storedRun struct {
	id    string
	began time.Time
	size  int64 // of its file, in bytes
}

// runs returns the runs with a journal, the latest first, and none if the folder does not
// exist.
func (j *Journals) runs() ([]storedRun, error) {
	folder, err := j.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		return nil, err
	}
	var runs []storedRun
	for _, name := range names {
		id, ok := runOf(name.Name())
		if !ok || !name.Type().IsRegular() {
			continue
		}
		info, err := name.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another run removed it
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, storedRun{id, began(folder, id, info), info.Size()})
	}
	slices.SortFunc(runs, func(a, b storedRun) int {
		return cmp.Or(b.began.Compare(a.began), cmp.Compare(b.id, a.id))
	})
	return runs, nil
}

// began returns when the run of a journal began. A file whose first line cannot be read is
// as old as its last write: a process that was killed may have left it.
func began(folder *os.Root, id string, info fs.FileInfo) time.Time {
	file, err := openRegular(folder, info.Name(), os.O_RDONLY)
	if err != nil {
		return info.ModTime()
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, journal.MaxPart+len("\n"))
	if !lines.Scan() {
		return info.ModTime()
	}
	part, err := journal.DecodePart(lines.Bytes())
	if err != nil || part.Run.ID != id {
		return info.ModTime()
	}
	return part.Run.StartedAt
}

// Read returns the journal of a run, with the errors of journal.Read. The ID may be in any
// case. If the run has no journal, the error wraps reaper.ErrNoJournal and names the runs
// that have one.
func (j *Journals) Read(ctx context.Context, runID string) (reaper.Journal, error) {
	if err := ctx.Err(); err != nil {
		return reaper.Journal{}, err
	}
	runs, err := j.runs()
	if err != nil {
		return reaper.Journal{}, fmt.Errorf("list the journals: %w", err)
	}
	i := slices.IndexFunc(runs, func(r storedRun) bool { return r.id == runID })
	if i < 0 {
		i = slices.IndexFunc(runs, func(r storedRun) bool { return strings.EqualFold(r.id, runID) })
	}
	if i < 0 {
		return reaper.Journal{}, j.noRun(runs, runID)
	}
	return j.read(runs[i].id)
}

// read returns the journal in the file of a run.
func (j *Journals) read(id string) (reaper.Journal, error) {
	folder, err := j.open()
	if err != nil {
		return reaper.Journal{}, err
	}
	defer folder.Close()
	name := j.folder.at(journalsName, id+journalEnd)
	file, err := openRegular(folder, id+journalEnd, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return reaper.Journal{}, fmt.Errorf("%s: %w: another run removed it", name, reaper.ErrNoJournal)
	}
	if err != nil {
		return reaper.Journal{}, fmt.Errorf("%s: %w", name, err)
	}
	defer file.Close()
	found, err := journal.Read(name, file)
	if err == nil && found.Run.ID != id {
		return reaper.Journal{}, fmt.Errorf("%s: %w: it has the journal of run %q", name, reaper.ErrJournalDamaged, found.Run.ID)
	}
	return found, err
}

// noRun returns the error for a run without a journal.
func (j *Journals) noRun(runs []storedRun, runID string) error {
	there := "no run has a journal there"
	if len(runs) > 0 {
		var names []string
		for _, r := range runs[:min(len(runs), maxRunsNamed)] {
			names = append(names, r.id)
		}
		there = fmt.Sprintf("runs with a journal there: %d, the latest are %s", len(runs), strings.Join(names, ", "))
	}
	return fmt.Errorf("%w of run %q in %s: %s", reaper.ErrNoJournal, runID, j.folder.at(journalsName), there)
}

// List returns the runs that have a journal, the latest first. It leaves out runs whose
// journals are empty: they released nothing. The warnings name the files that could not be
// read.
func (j *Journals) List(ctx context.Context) (runs []reaper.PastRun, warnings []string, err error) {
	stored, err := j.runs()
	if err != nil {
		return nil, nil, fmt.Errorf("list the journals: %w", err)
	}
	var unread []string
	for _, s := range stored {
		if err := ctx.Err(); err != nil {
			return nil, nil, fmt.Errorf("list the journals: %w", err)
		}
		found, err := j.read(s.id)
		if errors.Is(err, reaper.ErrNoJournal) {
			continue
		}
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			unread = append(unread, "run "+s.id+": "+first)
		}
		if len(found.Records) > 0 {
			runs = append(runs, past(found))
		}
	}
	return runs, unreadFiles(unread), nil
}

// past returns the run of a journal without its entries.
func past(j reaper.Journal) reaper.PastRun {
	var h reaper.History
	_ = h.AddJournal(j, nil) // its only error is the damage
	h.Runs[0].Entries = nil
	return h.Runs[0]
}

// unreadFiles returns a warning with the errors of files, if there are any.
func unreadFiles(errs []string) []string {
	if len(errs) == 0 {
		return nil
	}
	more := ""
	if n := len(errs) - maxFilesNamed; n > 0 {
		errs, more = errs[:maxFilesNamed], fmt.Sprintf(" and %d more", n)
	}
	return []string{"parts of journals could not be read, and are not counted: " + strings.Join(errs, "; ") + more}
}
