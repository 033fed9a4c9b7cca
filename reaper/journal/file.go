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

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A File keeps the journal of one run in a file, with one part on each line. It
// implements journal.Store. Its methods are for one goroutine.
type File struct {
	file   *os.File
	also   Store // nil for a file alone
	size   int64 // of the complete writes, in bytes
	writes int
	broken error // of the first write that failed; no write follows it
}

// NewFile returns a File that writes into an empty file. The caller must Close it.
func NewFile(file *os.File) *File { return &File{file: file} }

// Create creates the file of a run, which only its owner may read, alongside another store. The
// caller must Close it. Write and Prune do the same in the other store, so that nothing is
// released without a record in both.
//
// If the file exists, it may be the only journal of an earlier run. Create then leaves
// it as it is and returns an error that wraps fs.ErrExist.
func Create(path string, also Store) (*File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(path))
	}
	return &File{file: file, also: also}, nil
}

// syncFolder makes the names in a folder survive a crash of the machine.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Write implements journal.Store. When it returns nil, the records are on the disk.
// After an error, every later Write fails.
func (j *File) Write(ctx context.Context, run Run, records []ipam.Record) error {
	if err := errors.Join(j.broken, ctx.Err()); err != nil {
		return err
	}
	parts, err := Split(run, j.writes+1, records)
	if err != nil || len(parts) == 0 {
		return err
	}
	size, err := j.writeParts(parts)
	if err != nil {
		j.broken = fmt.Errorf("write the journal: %w", err)
		return errors.Join(j.broken, j.file.Truncate(j.size))
	}
	j.size += size
	j.writes++
	if j.also == nil {
		return nil
	}
	return j.also.Write(ctx, run, records)
}

// writeParts writes the parts to the disk. It returns their size in bytes.
func (j *File) writeParts(parts []Part) (size int64, err error) {
	for _, p := range parts {
		line, err := p.Encode()
		if err != nil {
			return 0, err
		}
		if _, err := j.file.Write(append(line, '\n')); err != nil {
			return 0, err
		}
		size += int64(len(line)) + 1
	}
	return size, j.file.Sync()
}

// Prune implements journal.Store. A file holds one run, so there is nothing to remove.
func (j *File) Prune(ctx context.Context) error {
	if j.also == nil {
		return nil
	}
	return j.also.Prune(ctx)
}

// Close closes the file.
func (j *File) Close() error { return j.file.Close() }

// Read reads the journal from the text of a file, whose name is for messages. It
// returns the errors of Assemble. The error wraps journal.ErrNone if the file holds
// no run, and is a *ipam.InputError if the file holds several runs.
func Read(name string, text io.Reader) (Journal, error) {
	stored, err := ReadParts(name, text)
	if err != nil {
		return Journal{}, err
	}
	var runs []string
	for _, s := range stored {
		if id := s.Part.Run.ID; s.Err == nil && !slices.Contains(runs, id) {
			runs = append(runs, id)
		}
	}
	switch {
	case len(stored) == 0:
		return Journal{}, fmt.Errorf("%s: %w: the file is empty, so its run released nothing", name, ErrNone)
	case len(runs) > 1:
		err := fmt.Errorf("%s: the file holds several runs: %s", name, strings.Join(runs, ", "))
		return Journal{}, ipam.BadInput(err, "give a file with the lines of one run")
	}
	return Assemble(strings.Join(runs, ""), stored)
}

// ReadParts reads each line of a file. It stops at a line that is too long for a part, and
// at the part that makes the journal too large.
func ReadParts(name string, text io.Reader) ([]StoredPart, error) {
	var stored []StoredPart
	var m Meter
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, MaxPart+len("\n"))
	for lines.Scan() {
		part := m.Decode(placeOf(name, len(stored)), lines.Bytes())
		stored = append(stored, part)
		if errors.Is(part.Err, errTooLarge) {
			return stored, nil
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("%w: the line is too long for a part, and the rest of the file was not read", ErrDamaged)
		return append(stored, StoredPart{Name: placeOf(name, len(stored)), Err: err}), nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return stored, nil
}

// placeOf names the line that follows n lines.
func placeOf(file string, n int) string { return fmt.Sprintf("%s, line %d", file, n+1) }
