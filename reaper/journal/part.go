// Package journal is the stored form of a journal: the parts that it is split into,
// what puts them together again, and a file of them.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"

	"github.com/ip-reaper/ip-reaper/reaper"
)

const (
	kind    = "ReapJournal"
	version = 1 // what Encode writes and DecodePart reads

	// partSize is what the records of one part may have in bytes, if there
	// is more than one.
	partSize = 512 << 10

	// most is the largest number of writes of a run, and of parts of a
	// write. It keeps the sums of numbers that were edited from overflowing.
	most = 1 << 30
)

// MaxPart is the most bytes that a part has: it fits in an object of an API
// server, which takes 1 MiB, even where gzip gains nothing.
const MaxPart = 1000 << 10

// A Part is one of the documents that a journal is stored in. A run writes
// several times, each time one or more parts.
type Part struct {
	Run     reaper.JournalRun `json:"run"`
	Write   int               `json:"write"` // from 1
	Part    int               `json:"part"`  // from 1
	Parts   int               `json:"parts"` // of this write
	Records []reaper.Record   `json:"records"`
}

// A head says how to read the rest.
type head struct {
	Kind    string `json:"kind"`
	Version int    `json:"version"`
}

// Encode returns the parts in which the records of one write are stored,
// each on one line; none where there are no records. What a record has stored
// comes out byte for byte, but for space between tokens. A record that could not be
// read back is an error, and then nothing is returned.
func Encode(run reaper.JournalRun, write int, records []reaper.Record) ([][]byte, error) {
	chunks, err := splitRecords(records)
	if err != nil {
		return nil, err
	}
	parts := make([][]byte, len(chunks))
	for i, chunk := range chunks {
		data, err := encodeLine(struct {
			head
			Part
		}{
			head{kind, version},
			Part{run, write, i + 1, len(chunks), chunk},
		})
		if err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
		if len(data) > MaxPart {
			return nil, fmt.Errorf("%s is too large for a journal: it takes %d bytes of at most %d", chunk[0], len(data), MaxPart)
		}
		if _, err := DecodePart(data); err != nil {
			return nil, fmt.Errorf("what the journal is to hold could not be read back: %w", err)
		}
		parts[i] = data
	}
	return parts, nil
}

// splitRecords returns the fewest runs of records, in their order, of at most
// partSize, or of one record.
func splitRecords(records []reaper.Record) ([][]reaper.Record, error) {
	var chunks [][]reaper.Record
	size := 0
	for i, r := range records {
		if err := checkRecord(r); err != nil {
			return nil, err
		}
		data, err := encodeLine(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r, err)
		}
		n := len(data) + len(",")
		size += n
		if len(chunks) == 0 || size > partSize {
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

// DecodePart reads a part that Encode returned. It returns an error
// that wraps reaper.ErrJournalDamaged for anything else, what a newer version wrote
// included.
func DecodePart(data []byte) (Part, error) {
	part, err := decodePart(data)
	if err != nil {
		return Part{}, fmt.Errorf("%w: %w", reaper.ErrJournalDamaged, err)
	}
	return part, nil
}

func decodePart(data []byte) (part Part, err error) {
	if len(data) > MaxPart {
		return part, fmt.Errorf("it has more than %d bytes", MaxPart)
	}
	var head head
	switch err := decodeJSON(data, &head); {
	case err != nil:
		return part, err
	case head.Kind != kind:
		return part, fmt.Errorf("it is of kind %q, not %s", head.Kind, kind)
	case head.Version > version:
		return part, fmt.Errorf("version %d, this program reads %d: use the newer ip-reaper", head.Version, version)
	case head.Version != version:
		return part, fmt.Errorf("version %d, this program reads %d", head.Version, version)
	}
	if err := decodeJSON(data, &part); err != nil {
		return part, err
	}
	switch {
	case part.Run.ID == "":
		return part, errors.New("it names no run")
	case part.Write < 1 || part.Write > most:
		return part, fmt.Errorf("%d is not the number of a write", part.Write)
	case part.Part < 1 || part.Part > part.Parts || part.Parts > most:
		return part, fmt.Errorf("it is part %d of %d", part.Part, part.Parts)
	case len(part.Records) == 0:
		return part, errors.New("it has no records")
	}
	for _, r := range part.Records {
		if err := checkRecord(r); err != nil {
			return part, err
		}
	}
	return part, nil
}

// checkRecord returns an error unless the record can be stored and read back.
func checkRecord(r reaper.Record) error {
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

// decodeJSON reads JSON case-sensitively and keeps integers exact.
func decodeJSON(data []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}
