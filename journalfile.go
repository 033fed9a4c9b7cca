package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A journalFile keeps the journal of one run in a file, a part on each line. It
// implements reaper.Journals; its methods are for one goroutine.
type journalFile struct {
	file   *os.File
	size   int64 // of what was written whole
	writes int
	broken error // of the first write that failed; there is none after it
}

// createJournalFile creates the file of a run. One that is there already may be all
// that can undo another run, and is refused. Whoever gets a journalFile must Close
// it.
func createJournalFile(path string) (*journalFile, error) {
	if path == stdin {
		return nil, &usageError{errors.New("--journal: the journal has to be a file"), ""}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		err = fmt.Errorf("--journal: %s is there already, and may be what an earlier run can be undone by", path)
		return nil, &usageError{err, "give a file that does not exist yet"}
	case err != nil:
		return nil, &usageError{fmt.Errorf("--journal: %w", err), ""}
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return nil, errors.Join(fmt.Errorf("--journal: %w", err), file.Close(), os.Remove(path))
	}
	return &journalFile{file: file}, nil
}

// syncFolder has the names in a folder outlive a crash of the machine.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Write implements reaper.Journals. When it returns, the records are on the disk.
// After a failure nothing more is written.
func (j *journalFile) Write(ctx context.Context, run reaper.JournalRun, records []reaper.Record) error {
	if err := errors.Join(j.broken, ctx.Err()); err != nil {
		return err
	}
	parts, err := reaper.EncodeJournal(run, j.writes+1, records)
	if err != nil || len(parts) == 0 {
		return err
	}
	var lines []byte
	for _, part := range parts {
		lines = append(append(lines, part...), '\n')
	}
	if _, err = j.file.Write(lines); err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.broken = fmt.Errorf("write the journal: %w", err)
		return errors.Join(j.broken, j.file.Truncate(j.size))
	}
	j.size += int64(len(lines))
	j.writes++
	return nil
}

// Prune implements reaper.Journals: a file holds one run.
func (*journalFile) Prune(context.Context) error { return nil }

// Close closes the file.
func (j *journalFile) Close() error { return j.file.Close() }

// readJournalFile reads the journal in a file; "-" is stdin. Damage is told as by
// reaper.AssembleJournal, and comes with what could be read. A file without any run
// is reaper.ErrNoJournal; one of several runs is refused.
func readJournalFile(ctx context.Context, in io.Reader, path string) (reaper.Journal, error) {
	text, name, err := open(ctx, in, path)
	if err != nil {
		return reaper.Journal{}, &usageError{err, ""}
	}
	defer text.Close()
	stored, err := readParts(name, text)
	if err != nil {
		return reaper.Journal{}, fmt.Errorf("%s: %w", name, err)
	}
	var runs []string
	for _, s := range stored {
		if id := s.Part.Run.ID; s.Err == nil && !slices.Contains(runs, id) {
			runs = append(runs, id)
		}
	}
	switch {
	case len(stored) == 0:
		return reaper.Journal{}, fmt.Errorf("%s: %w: it holds no run: nothing was released", name, reaper.ErrNoJournal)
	case len(runs) > 1:
		err := fmt.Errorf("%s: it holds several runs: %s", name, strings.Join(runs, ", "))
		return reaper.Journal{}, &usageError{err, "give a file with the lines of one"}
	}
	return reaper.AssembleJournal(strings.Join(runs, ""), stored)
}

// readParts reads each line of a file; what is behind a line that is too long to be
// a part is not read.
func readParts(name string, text io.Reader) ([]reaper.StoredPart, error) {
	var stored []reaper.StoredPart
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, reaper.MaxJournalPart+len("\n"))
	for lines.Scan() {
		part, err := reaper.DecodeJournalPart(lines.Bytes())
		stored = append(stored, reaper.StoredPart{Name: placeOf(name, len(stored)), Part: part, Err: err})
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("%w: the line is too long, and what follows was not read", reaper.ErrJournalDamaged)
		return append(stored, reaper.StoredPart{Name: placeOf(name, len(stored)), Err: err}), nil
	}
	return stored, err
}

// placeOf names a line after n others.
func placeOf(file string, n int) string { return fmt.Sprintf("%s, line %d", file, n+1) }
