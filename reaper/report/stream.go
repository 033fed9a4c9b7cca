package report

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A stream is a report in two parts: the report without its entries, and these. A report of a
// large cluster has hundreds of megabytes as text, so they are written in small parts.
type stream struct {
	head    any
	entries []any // each is a slice of some entries
}

// entriesAtOnce is how many entries are encoded together.
const entriesAtOnce = 64

// streamOf returns the parts of a report. It returns false for a report that has no entries,
// and for one of another kind.
func streamOf(value any) (stream, bool) {
	switch r := value.(type) {
	case reaper.Report:
		entries := r.Entries
		r.Entries = []reaper.Entry{}
		return newStream(r, entries)
	case reaper.RestoreReport:
		entries := r.Entries
		r.Entries = []reaper.RestoreEntry{}
		return newStream(r, entries)
	}
	return stream{}, false
}

func newStream[E any](head any, entries []E) (stream, bool) {
	s := stream{head: head}
	for some := range slices.Chunk(entries, entriesAtOnce) {
		s.entries = append(s.entries, some)
	}
	return s, len(entries) > 0
}

// errNoPlace says that the text of a report has no place for its entries, or several.
var errNoPlace = errors.New("the report has no field entries")

// write writes the text of the head, with the entries in the place of an empty list.
func (s stream) write(w io.Writer, printable func(io.Writer) io.Writer, f streamForm) error {
	text, err := f.encode(s.head)
	if err != nil {
		return err
	}
	before, after, found := bytes.Cut(text, []byte(f.place))
	if !found || bytes.Contains(after, []byte(f.place)) {
		return errNoPlace
	}
	buffer := bufio.NewWriterSize(w, 1<<16)
	out := printable(buffer)
	parts := [][]byte{before, []byte(f.open)}
	for i, some := range s.entries {
		part, err := f.part(some)
		if err != nil {
			return err
		}
		if i > 0 {
			parts = append(parts, []byte(f.between))
		}
		for _, p := range append(parts, part) {
			if _, err := out.Write(p); err != nil {
				return err
			}
		}
		parts = nil
	}
	for _, p := range [][]byte{[]byte(f.shut), after} {
		if _, err := out.Write(p); err != nil {
			return err
		}
	}
	return buffer.Flush()
}

// A streamForm is how a format writes a stream.
type streamForm struct {
	encode func(value any) ([]byte, error)
	part   func(some any) ([]byte, error) // of some entries, without what is around all of them

	place               string // the empty list of entries in the text of a head; no text of a user can have it
	open, between, shut string
}
