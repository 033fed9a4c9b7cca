package reaper

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"unicode/utf8"
)

const (
	journalKind    = "ReapJournal"
	journalVersion = 1 // what EncodeJournal writes and DecodeJournalPart reads

	// journalPartSize is what the records of one part may have in bytes, if there
	// is more than one.
	journalPartSize = 512 << 10

	// journalMost is the largest number of writes of a run, and of parts of a
	// write. It keeps the sums of numbers that were edited from overflowing.
	journalMost = 1 << 30
)

// MaxJournalPart is the most bytes that a part has: it fits in an object of an API
// server, which takes 1 MiB, even where gzip gains nothing.
const MaxJournalPart = 1000 << 10

// A JournalPart is one of the documents that a journal is stored in. A run writes
// several times, each time one or more parts.
type JournalPart struct {
	Run     JournalRun `json:"run"`
	Write   int        `json:"write"` // from 1
	Part    int        `json:"part"`  // from 1
	Parts   int        `json:"parts"` // of this write
	Records []Record   `json:"records"`
}

// A journalHead says how to read the rest.
type journalHead struct {
	Kind    string `json:"kind"`
	Version int    `json:"version"`
}

// EncodeJournal returns the parts in which the records of one write are stored,
// each on one line; none where there are no records. What a record has stored
// comes out byte for byte, but for space between tokens. A record that could not be
// read back is an error, and then nothing is returned.
func EncodeJournal(run JournalRun, write int, records []Record) ([][]byte, error) {
	chunks, err := splitRecords(records)
	if err != nil {
		return nil, err
	}
	parts := make([][]byte, len(chunks))
	for i, chunk := range chunks {
		data, err := encodeLine(struct {
			journalHead
			JournalPart
		}{
			journalHead{journalKind, journalVersion},
			JournalPart{run, write, i + 1, len(chunks), chunk},
		})
		if err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
		if len(data) > MaxJournalPart {
			return nil, fmt.Errorf("%s is too large for a journal: it takes %d bytes of at most %d", chunk[0], len(data), MaxJournalPart)
		}
		if _, err := DecodeJournalPart(data); err != nil {
			return nil, fmt.Errorf("what the journal is to hold could not be read back: %w", err)
		}
		parts[i] = data
	}
	return parts, nil
}

// splitRecords returns the fewest runs of records, in their order, of at most
// journalPartSize, or of one record.
func splitRecords(records []Record) ([][]Record, error) {
	var chunks [][]Record
	size := 0
	for i, r := range records {
		if err := r.check(); err != nil {
			return nil, err
		}
		data, err := encodeLine(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r, err)
		}
		n := len(data) + len(",")
		size += n
		if len(chunks) == 0 || size > journalPartSize {
			chunks, size = append(chunks, nil), n
		}
		last := len(chunks) - 1
		chunks[last] = append(chunks[last], records[i])
	}
	return chunks, nil
}

// encodeLine is json.Marshal without the escapes for HTML, which would change what
// stores had.
func encodeLine(v any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// DecodeJournalPart reads a part that EncodeJournal returned. It returns an error
// that wraps ErrJournalDamaged for anything else, what a newer version wrote
// included.
func DecodeJournalPart(data []byte) (JournalPart, error) {
	part, err := decodePart(data)
	if err != nil {
		return JournalPart{}, fmt.Errorf("%w: %w", ErrJournalDamaged, err)
	}
	return part, nil
}

func decodePart(data []byte) (part JournalPart, err error) {
	if len(data) > MaxJournalPart {
		return part, fmt.Errorf("it has more than %d bytes", MaxJournalPart)
	}
	var head journalHead
	switch err := Decode(data, &head); {
	case err != nil:
		return part, err
	case head.Kind != journalKind:
		return part, fmt.Errorf("it is of kind %q, not %s", head.Kind, journalKind)
	case head.Version > journalVersion:
		return part, fmt.Errorf("version %d, this program reads %d: use the newer ip-reaper", head.Version, journalVersion)
	case head.Version != journalVersion:
		return part, fmt.Errorf("version %d, this program reads %d", head.Version, journalVersion)
	}
	if err := Decode(data, &part); err != nil {
		return part, err
	}
	switch {
	case part.Run.ID == "":
		return part, errors.New("it names no run")
	case part.Write < 1 || part.Write > journalMost:
		return part, fmt.Errorf("%d is not the number of a write", part.Write)
	case part.Part < 1 || part.Part > part.Parts || part.Parts > journalMost:
		return part, fmt.Errorf("it is part %d of %d", part.Part, part.Parts)
	case len(part.Records) == 0:
		return part, errors.New("it has no records")
	}
	for _, r := range part.Records {
		if err := r.check(); err != nil {
			return part, err
		}
	}
	return part, nil
}

// check returns an error unless the record can be stored and read back.
func (r Record) check() error {
	for _, name := range []string{r.Backend, r.Pool, r.Key} {
		if name == "" || !utf8.ValidString(name) {
			return fmt.Errorf("%s does not name an entry", r)
		}
	}
	if r.IP != "" {
		if _, err := netip.ParseAddr(r.IP); err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
	}
	if !json.Valid(r.Stored) || string(r.Stored) == "null" {
		return fmt.Errorf("%s does not have what was stored, as JSON", r)
	}
	return nil
}
