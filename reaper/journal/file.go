package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A File keeps the journal of one run in a file, a part on each line. It
// implements reaper.Journals; its methods are for one goroutine.
type File struct {
	file   *os.File
	size   int64 // of what was written whole
	writes int
	broken error // of the first write that failed; there is none after it
}

// Create creates the file of a run, which only its owner may read. A file that is
// there already may be all that can undo another run: Create refuses it by an error
// that wraps fs.ErrExist. The caller must Close the file.
func Create(path string) (*File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(path))
	}
	return &File{file: file}, nil
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
func (j *File) Write(ctx context.Context, run reaper.JournalRun, records []reaper.Record) error {
	if err := errors.Join(j.broken, ctx.Err()); err != nil {
		return err
	}
	parts, err := Encode(run, j.writes+1, records)
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
func (*File) Prune(context.Context) error { return nil }

// Close closes the file.
func (j *File) Close() error { return j.file.Close() }

// Read reads the journal in a file that people call by this name. Damage is told as
// by Assemble, and comes with what could be read. A file without any run is
// reaper.ErrNoJournal; one of several runs is a *reaper.InputError.
func Read(name string, text io.Reader) (reaper.Journal, error) {
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
		return reaper.Journal{}, reaper.BadInput(err, "give a file with the lines of one")
	}
	return Assemble(strings.Join(runs, ""), stored)
}

// readParts reads each line of a file; what is behind a line that is too long to be
// a part is not read.
func readParts(name string, text io.Reader) ([]StoredPart, error) {
	var stored []StoredPart
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, MaxPart+len("\n"))
	for lines.Scan() {
		part, err := DecodePart(lines.Bytes())
		stored = append(stored, StoredPart{Name: placeOf(name, len(stored)), Part: part, Err: err})
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("%w: the line is too long, and what follows was not read", reaper.ErrJournalDamaged)
		return append(stored, StoredPart{Name: placeOf(name, len(stored)), Err: err}), nil
	}
	return stored, err
}

// placeOf names a line after n others.
func placeOf(file string, n int) string { return fmt.Sprintf("%s, line %d", file, n+1) }
