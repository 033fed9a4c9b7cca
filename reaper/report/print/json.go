package print

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/ip-reaper/ip-reaper/reaper/printable"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// printJSON prints the value of a view. A report of a large cluster is hundreds of megabytes
// of text, so its entries are encoded one by one, and written into an empty list. A string in
// JSON never contains a line break, so what is found is that list.
func printJSON(w io.Writer, v view) error {
	value, entries := withoutEntries(v.value)
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	before, after := append(text, '\n'), []byte(nil)
	if len(entries) > 0 {
		const list = "\n  \"entries\": ["
		at := bytes.Index(text, []byte(list+"]"))
		if at < 0 {
			return errors.New("the report has no field entries")
		}
		before, after = before[:at+len(list)], before[at+len(list):]
	}
	buffer := bufio.NewWriter(w)
	out := printable.JSON(buffer) // no character may be split between two of its writes
	_, err = out.Write(before)
	separator, end := "\n    ", ""
	for _, e := range entries {
		if err != nil {
			return err
		}
		if text, err = json.MarshalIndent(e, "    ", "  "); err == nil {
			_, err = out.Write(append([]byte(separator), text...))
		}
		separator, end = ",\n    ", "\n  "
	}
	if err == nil {
		_, err = out.Write(append([]byte(end), after...))
	}
	return errors.Join(err, buffer.Flush())
}

// withoutEntries returns a report without its entries, and pointers to these. Any other value has none.
func withoutEntries(value any) (head any, entries []any) {
	switch r := value.(type) {
	case report.Report:
		entries = pointers(r.Entries)
		r.Entries = []report.Entry{}
		return r, entries
	case report.RestoreReport:
		entries = pointers(r.Entries)
		r.Entries = []report.RestoreEntry{}
		return r, entries
	}
	return value, nil
}

func pointers[E any](entries []E) (all []any) {
	for i := range entries {
		all = append(all, &entries[i])
	}
	return all
}
