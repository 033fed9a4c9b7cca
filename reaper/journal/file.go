package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A File keeps the journal of one run in a file, with one part on each line. Its methods are for
// one goroutine.
type File struct {
	file   *os.File
	size   int64 // of the complete writes, in bytes
	writes int
	broken error // of the first write that failed; no write follows it
}

// NewFile returns a File that writes into an empty file. The caller must Close it.
func NewFile(file *os.File) *File { return &File{file: file} }

// Write writes records as a Store does. When it returns nil, they are on the disk. After an error
// other than a *UnfitError, every later Write fails.
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
	return nil
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

// Close closes the file.
func (j *File) Close() error { return j.file.Close() }

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
