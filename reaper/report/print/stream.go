package print

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// A textForm is how a format writes the value of a view. A report of a large cluster has
// hundreds of megabytes as text, so its entries are encoded some at a time, and written in
// the place of an empty list.
type textForm struct {
	encode    func(value any) ([]byte, error)
	part      func(some any) ([]byte, error) // of some entries, without what is around all of them
	printable func(io.Writer) io.Writer

	place               string // the empty list of entries in a report; no text of a user can have it
	open, between, shut string
}

// write writes a value.
func (f textForm) write(w io.Writer, value any) error {
	value, entries := apart(value)
	text, err := f.encode(value)
	if err != nil {
		return err
	}
	buffer := bufio.NewWriterSize(w, 1<<16)
	out := f.printable(buffer)
	before, after, found := bytes.Cut(text, []byte(f.place))
	switch {
	case len(entries) == 0:
		before, after = text, nil
	case !found:
		return errors.New("the report has no field entries")
	}
	write := func(text []byte) {
		if err == nil {
			_, err = out.Write(text)
		}
	}
	write(before)
	between := f.open
	for _, some := range entries {
		part, failed := f.part(some)
		if failed != nil {
			return failed
		}
		write([]byte(between))
		write(part)
		between = f.between
	}
	if len(entries) > 0 {
		write([]byte(f.shut))
	}
	write(after)
	return errors.Join(err, buffer.Flush())
}

// apart returns a report without its entries, and these. Any other value has none.
func apart(value any) (head any, entries []any) {
	switch r := value.(type) {
	case report.Report:
		entries = chunks(r.Entries)
		r.Entries = []report.Entry{}
		return r, entries
	case report.RestoreReport:
		entries = chunks(r.Entries)
		r.Entries = []report.RestoreEntry{}
		return r, entries
	}
	return value, nil
}

// entriesAtOnce is how many entries are encoded together.
const entriesAtOnce = 64

func chunks[E any](entries []E) (all []any) {
	for some := range slices.Chunk(entries, entriesAtOnce) {
		all = append(all, some)
	}
	return all
}
