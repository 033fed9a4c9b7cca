package journal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// Promise 2. For any stored lines, reading does not panic and reports damage, and the
// parts that were read encode to the same bytes.
func FuzzJournal(f *testing.F) {
	first := encode(f, 1, record("7", `{"a":[1,"<"]}`))[0]
	f.Add(first)
	f.Add(bytes.Join([][]byte{first, encode(f, 2, record("8", `2`))[0]}, []byte("\n")))
	f.Add(bytes.Join([][]byte{first, first}, []byte("\n")))
	f.Add(bytes.Replace(first, []byte(`"parts":1`), []byte(`"parts":1073741824`), 1))
	f.Add(bytes.Replace(first, []byte(`"write":1`), []byte(`"write":1073741824`), 1))
	f.Add(bytes.Replace(first, []byte(`"version":1,`), []byte(`"version":2,`), 1))
	f.Add(bytes.Replace(first, []byte(`12:00:00Z`), []byte(`12:00:00.000000001+14:00`), 1))
	f.Add([]byte("{}\n\nnull"))
	f.Fuzz(func(t *testing.T, data []byte) {
		stored := decoded(bytes.Split(data, []byte("\n"))...)
		read := 0
		for _, s := range stored {
			if s.Err != nil {
				if !errors.Is(s.Err, journal.ErrDamaged) || s.Part.Records != nil {
					t.Errorf("%s: %d records with %v", s.Name, len(s.Part.Records), s.Err)
				}
				continue
			}
			read += len(s.Part.Records)
			wantSameAgain(t, s.Part)
		}
		past, err := journal.Assemble(stored[0].Part.Run.ID, stored)
		if err != nil && !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("%v, want ErrJournalDamaged", err)
		}
		if len(past.Records) > read || err == nil && len(past.Records) != read {
			t.Errorf("%d records of %d, %v", len(past.Records), read, err)
		}
	})
}

// wantSameAgain checks that a part that could be read is written as it was.
func wantSameAgain(t *testing.T, part journal.Part) {
	t.Helper()
	parts, err := encoded(part.Run, part.Write, part.Records)
	if err != nil {
		t.Fatal(err)
	}
	for i := range part.Records {
		var compact bytes.Buffer
		if err := json.Compact(&compact, part.Records[i].Stored); err != nil {
			t.Fatal(err)
		}
		part.Records[i].Stored = compact.Bytes()
	}
	journal, err := journal.Assemble(part.Run.ID, decoded(parts...))
	if part.Write > 1 {
		err = nil // the writes before it are missing
	}
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "records", journal.Records, part.Records)
	if !journal.Run.StartedAt.Equal(part.Run.StartedAt) {
		t.Errorf("started at %v, want %v", journal.Run.StartedAt, part.Run.StartedAt)
	}
	journal.Run.StartedAt, part.Run.StartedAt = time.Time{}, time.Time{}
	equal(t, "run", journal.Run, part.Run)
}
