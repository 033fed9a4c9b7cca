// Package journal stores journals. It splits a journal into parts, puts the parts
// together again, and keeps them in a file.
package journal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"regexp"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

const (
	kind    = "ReapJournal"
	version = 1 // of the format that Encode writes and DecodePart reads

	// maxNumber is the largest number of writes of a run, and of parts of a
	// write. Numbers that a user edited cannot overflow below it.
	maxNumber = 1 << 30
)

// MaxPart is the largest size of a part, in bytes. The admission policies let an account
// write no more, so a part fits even if gzip does not make it smaller.
const MaxPart = 512 << 10

// maxRecords is the largest size of the records of a part, in bytes. The rest describes its run.
const maxRecords = MaxPart - 4<<10

// runID matches the IDs that a name and a label of a Kubernetes object may have.
var runID = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

// IsRunID reports whether a journal can be of a run with this ID. Such an ID is also the
// name of a file.
func IsRunID(id string) bool { return runID.MatchString(id) }

// A Part is one stored document of a journal. A run writes its journal several times,
// and each write has one or more parts.
type Part struct {
	Run     Run           `json:"run"`
	Write   int           `json:"write"` // from 1
	Part    int           `json:"part"`  // from 1
	Parts   int           `json:"parts"` // of this write
	Records []ipam.Record `json:"records"`
}

// A head names the format of a part.
type head struct {
	Kind    string `json:"kind"`
	Version int    `json:"version"`
}

// Split returns the parts of one write, with their records in order: none without records.
//
// If a record cannot be stored and read back, the error is an *UnfitError.
func Split(run Run, write int, records []ipam.Record) ([]Part, error) {
	var chunks [][]ipam.Record
	unfit := make(map[int]error)
	first, size := 0, 0
	for i, r := range records {
		if err := checkRecord(r); err != nil {
			unfit[i] = err
			continue
		}
		data, err := encodeLine(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r, err)
		}
		n := len(data) + len(",")
		if n > maxRecords {
			unfit[i] = fmt.Errorf("%s is too large for the journal: %d bytes, at most %d", r, n, maxRecords)
			continue
		}
		if size += n; size > maxRecords {
			chunks = append(chunks, records[first:i])
			first, size = i, n
		}
	}
	if len(unfit) > 0 {
		return nil, &UnfitError{Records: unfit}
	}
	if len(records) > 0 {
		chunks = append(chunks, records[first:])
	}
	parts := make([]Part, len(chunks))
	for i, chunk := range chunks {
		parts[i] = Part{run, write, i + 1, len(chunks), chunk}
	}
	return parts, nil
}

// MarshalJSON returns a part with the name of its format.
func (p Part) MarshalJSON() ([]byte, error) {
	type fields Part // without this method
	return encodeLine(struct {
		head
		fields
	}{head{kind, version}, fields(p)})
}

// Encode returns a part as one line. The parts of 100,000 records total 100 MiB, so a caller
// encodes and stores one at a time.
//
// DecodePart returns the stored objects of the records byte for byte, except for space
// between tokens. If it could not read the part back, Encode returns an error.
func (p Part) Encode() ([]byte, error) {
	data, err := encodeLine(p)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if _, err := DecodePart(data); err != nil {
		return nil, fmt.Errorf("the journal could not be read back: %w", err)
	}
	return data, nil
}

// encodeLine is json.Marshal without the escapes for HTML, which would change the
// bytes of stored objects.
func encodeLine(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// DecodePart reads a part that Encode returned. For any other data, including a part of
// a newer version, it returns an error that wraps ErrDamaged.
func DecodePart(data []byte) (Part, error) {
	if len(data) > MaxPart {
		return Part{}, fmt.Errorf("%w: the part has more than %d bytes", ErrDamaged, MaxPart)
	}
	part, err := decodePart(data)
	if err != nil {
		return Part{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return part, nil
}

func decodePart(data []byte) (part Part, err error) {
	var head head
	switch err := decodeJSON(data, &head); {
	case err != nil:
		return part, err
	case head.Kind != kind:
		return part, fmt.Errorf("the part is of kind %.80q, not %s", head.Kind, kind)
	case head.Version > version:
		return part, fmt.Errorf("the part has version %d, this program reads %d: use the newer ip-reaper", head.Version, version)
	case head.Version != version:
		return part, fmt.Errorf("the part has version %d, this program reads %d", head.Version, version)
	}
	if err := decodeJSON(data, &part); err != nil {
		return part, err
	}
	switch {
	case !runID.MatchString(part.Run.ID):
		return part, fmt.Errorf("the part is of run %.80q, which is not the ID of a run", part.Run.ID)
	case part.Write < 1 || part.Write > maxNumber:
		return part, fmt.Errorf("%d is not the number of a write", part.Write)
	case part.Part < 1 || part.Part > part.Parts || part.Parts > maxNumber:
		return part, fmt.Errorf("the part claims to be part %d of %d", part.Part, part.Parts)
	case len(part.Records) == 0:
		return part, errors.New("the part has no records")
	}
	for _, r := range part.Records {
		if err := checkRecord(r); err != nil {
			return part, err
		}
	}
	return part, nil
}

// checkRecord returns an error unless the record can be stored and read back.
func checkRecord(r ipam.Record) error {
	for _, name := range []string{r.Backend, r.Pool, r.Key} {
		if name == "" || !utf8.ValidString(name) {
			return fmt.Errorf("%s: the record has no backend, pool or key, or one that is not UTF-8", r)
		}
	}
	if r.IP != "" {
		if _, err := netip.ParseAddr(r.IP); err != nil {
			return fmt.Errorf("%s: %q is not an IP address", r, r.IP)
		}
	}
	if !json.Valid(r.Stored) || string(bytes.TrimSpace(r.Stored)) == "null" {
		return fmt.Errorf("%s: the stored object of the record is not JSON", r)
	}
	return nil
}

// decodeJSON reads JSON case-sensitively and keeps integers exact.
func decodeJSON(data []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}

// MaxSize is the largest total size of the parts of a journal, in bytes: about 250,000
// records of 1 KiB.
const MaxSize = 256 << 20

// minCost is the least that a part counts, however small it is.
const minCost = 8 << 10

// errTooLarge says that a part is beyond MaxSize.
var errTooLarge = fmt.Errorf("%w: the parts have more than %d MiB together, and this part and those after it were not read", ErrDamaged, MaxSize>>20)

// A Meter decodes the parts of one journal as long as they total at most MaxSize bytes. The
// zero value is ready for use.
type Meter struct {
	total int
	costs map[string]int // by name
}

// Decode reads a part, whose name is for messages. A part that is decoded again under the
// same name counts once.
func (m *Meter) Decode(name string, data []byte) StoredPart {
	if m.costs == nil {
		m.costs = make(map[string]int)
	}
	cost := max(len(data), minCost)
	m.total += cost - m.costs[name]
	m.costs[name] = cost
	if m.total > MaxSize {
		return StoredPart{Name: name, Err: errTooLarge}
	}
	part, err := DecodePart(data)
	return StoredPart{Name: name, Part: part, Err: err}
}

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
		part := m.Decode(lineOf(name, len(stored)), lines.Bytes())
		stored = append(stored, part)
		if errors.Is(part.Err, errTooLarge) {
			return stored, nil
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("%w: the line is too long for a part, and the rest of the file was not read", ErrDamaged)
		return append(stored, StoredPart{Name: lineOf(name, len(stored)), Err: err}), nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return stored, nil
}

// lineOf names the line that follows n lines.
func lineOf(file string, n int) string { return fmt.Sprintf("%s, line %d", file, n+1) }
