package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// aRun is one that writes a journal.
var aRun = Run{ID: "run-1", StartedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Version: "v1", Cluster: "https://cluster"}

// someRecords are n records whose keys begin with a word.
func someRecords(word string, n int) []ipam.Record {
	records := make([]ipam.Record, n)
	for i := range records {
		records[i] = ipam.Record{
			Backend: "whereabouts", Pool: "blue", Key: fmt.Sprint(word, i), IP: "10.0.0.1",
			Stored: fmt.Appendf(nil, `{"id":"<%d>","n":18446744073709551615}`, i),
		}
	}
	return records
}

// newFile returns an empty file for the journal of a run.
func newFile(t *testing.T) *File {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	return NewFile(file)
}

// written returns the text of a file with the journal of aRun.
func written(t *testing.T, writes ...[]ipam.Record) string {
	t.Helper()
	j := newFile(t)
	for _, records := range writes {
		if err := j.Write(t.Context(), aRun, records); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(j.file.Name())
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// read reads the journal of aRun from the text of a file.
func read(t *testing.T, text string) (Journal, error) {
	t.Helper()
	stored, err := ReadParts("file", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return Assemble(aRun.ID, stored)
}

// Promise 10.
func TestJournalFileIsReadAsItWasWritten(t *testing.T) {
	first, second := someRecords("a", 5_000), someRecords("b", 3)
	want := Journal{Run: aRun, Records: append(first, second...), Writes: []int{5_000, 3}}
	got, err := read(t, written(t, first, nil, second))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(want, got) { // which is faster than a diff
		t.Errorf("the journal has %d records of %v, want %d of %v", len(got.Records), got.Run, len(want.Records), want.Run)
	}
}

// Promise 8: a run that is killed in the middle of a write has released nothing of it,
// and the rest can be undone.
func TestDamagedJournalFileIsReadAsFarAsItGoes(t *testing.T) {
	first := someRecords("a", 2)
	whole := written(t, first, someRecords("b", 2))
	cut := strings.IndexByte(whole, '\n') + 1
	for _, tt := range []struct{ name, text, want string }{
		{"cut short", whole[:len(whole)-10], "file, line 2: "},
		{"junk", whole[:cut] + "junk\n", "file, line 2: "},
		{"a line without an end", whole[:cut] + strings.Repeat("x", 2<<20), "file, line 2: "},
		{"the first is gone", whole[:9] + "\n" + whole[:cut], "file, line 1: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			journal, err := read(t, tt.text)
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want damage in %s", err, tt.want)
			}
			if diff := cmp.Diff(first, journal.Records); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// Promise 10: what was only partly written does not count as written.
func TestJournalFileThatFailedStaysClosed(t *testing.T) {
	j := newFile(t)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := j.Write(t.Context(), aRun, someRecords("a", 1)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Write = %v, want that the file is closed", err)
		}
	}
	var err error
	if j.file, err = os.OpenFile(j.file.Name(), os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	if err := j.Write(t.Context(), aRun, someRecords("a", 1)); err == nil {
		t.Error("a Write after one that failed succeeded")
	}
}
