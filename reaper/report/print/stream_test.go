package print

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// manyEntries returns a report with this many entries, and with texts that look like the place
// of the entries.
func manyEntries(n int) report.Report {
	some := append(fullReport().Entries, hostileReport().Entries...)
	r := hostileReport()
	r.Warnings = append(r.Warnings, "\n  \"entries\": []", "\nentries: []\n", "entries: []")
	r.Entries = []report.Entry{}
	for i := range n {
		e := some[i%len(some)]
		e.Key = fmt.Sprint(i)
		r.Entries = append(r.Entries, e)
	}
	return r
}

// Promise 7. A report that is written in parts is the one that is encoded as a whole.
func TestStreamIsTheWholeReport(t *testing.T) {
	for _, n := range []int{0, 1, entriesAtOnce, 3*entriesAtOnce + 7} {
		for name, form := range map[string]textForm{"json": jsonForm, "yaml": yamlForm} {
			t.Run(fmt.Sprint(name, " of ", n), func(t *testing.T) {
				report := manyEntries(n)
				var got, want bytes.Buffer
				if err := form.write(&got, report); err != nil {
					t.Fatal(err)
				}
				whole, err := form.encode(report)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := form.printable(&want).Write(whole); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want.String(), got.String()); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// A writer that fails ends the report with its error.
func TestStreamReturnsTheErrorOfItsWriter(t *testing.T) {
	read, write := io.Pipe()
	_ = read.Close()
	if err := printJSON(write, view{value: manyEntries(10_000)}); err == nil {
		t.Error("no error")
	}
}
