package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
func aRun(id string) Run {
	return Run{ID: id, StartedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Version: "v1", Cluster: "https://cluster"}
}

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

// written returns a file with the journal of a run.
func written(t *testing.T, run string, writes ...[]ipam.Record) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal")
	j, err := Create(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, records := range writes {
		if err := j.Write(t.Context(), aRun(run), records); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(j.Prune(t.Context()), j.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// readPath reads the journal in the file at a path.
func readPath(t *testing.T, path string) (Journal, error) {
	t.Helper()
	text, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := text.Close(); err != nil {
			t.Error(err)
		}
	})
	return Read(path, text)
}

// Promise 10.
func TestJournalFileIsReadAsItWasWritten(t *testing.T) {
	first, second := someRecords("a", 5_000), someRecords("b", 3)
	path := written(t, "run-1", first, nil, second)
	want := Journal{Run: aRun("run-1"), Records: append(first, second...), Writes: []int{5_000, 3}}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() (Journal, error){
		"file": func() (Journal, error) { return readPath(t, path) },
		"stdin": func() (Journal, error) {
			return Read("stdin", strings.NewReader(string(text)))
		},
	} {
		got, err := read()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(want, got) { // which is faster than a diff
			t.Errorf("%s has %d records of %v, want %d of %v", name, len(got.Records), got.Run, len(want.Records), want.Run)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v, want that only its owner may read it", info.Mode(), err)
	}
}

func TestJournalFileThatIsThereIsNotTouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create = %v, want that the file exists", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "precious" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

func TestEmptyJournalFileIsOfNoRun(t *testing.T) {
	_, err := readPath(t, written(t, "run-1"))
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "its run released nothing") {
		t.Errorf("%v, want that its run released nothing", err)
	}
}

func TestJournalFileOfSeveralRunsIsRefused(t *testing.T) {
	var text []byte
	for _, run := range []string{"run-1", "run-2"} {
		more, err := os.ReadFile(written(t, run, someRecords("a", 1)))
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, more...)
	}
	journal, err := Read("stdin", strings.NewReader(string(text)))
	if usage := (*ipam.InputError)(nil); !errors.As(err, &usage) || !strings.Contains(err.Error(), "run-1, run-2") {
		t.Errorf("%v, want that both runs are named", err)
	}
	if journal.Records != nil {
		t.Errorf("%d records, want none", len(journal.Records))
	}
}

// Promise 8: a run that is killed in the middle of a write has released nothing of it,
// and the rest can be undone.
func TestDamagedJournalFileIsReadAsFarAsItGoes(t *testing.T) {
	first := someRecords("a", 2)
	whole, err := os.ReadFile(written(t, "run-1", first, someRecords("b", 2)))
	if err != nil {
		t.Fatal(err)
	}
	cut := strings.IndexByte(string(whole), '\n') + 1
	for _, tt := range []struct{ name, text, want string }{
		{"cut short", string(whole[:len(whole)-10]), "stdin, line 2: "},
		{"junk", string(whole[:cut]) + "junk\n", "stdin, line 2: "},
		{"a line without an end", string(whole[:cut]) + strings.Repeat("x", 2<<20), "stdin, line 2: "},
		{"the first is gone", string(whole[:cut][:9]) + "\n" + string(whole[:cut]), "stdin, line 1: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			journal, err := Read("stdin", strings.NewReader(tt.text))
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
	path := filepath.Join(t.TempDir(), "journal")
	j, err := Create(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := j.Write(t.Context(), aRun("run-1"), someRecords("a", 1)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Write = %v, want that the file is closed", err)
		}
	}
	if j.file, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	if err := j.Write(t.Context(), aRun("run-1"), someRecords("a", 1)); err == nil {
		t.Error("a Write after one that failed succeeded")
	}
}

// others are other journals, which may fail.
type others struct {
	records, prunes int
	err             error
}

func (o *others) Write(_ context.Context, _ Run, records []ipam.Record) error {
	o.records += len(records)
	return o.err
}

func (o *others) Prune(context.Context) error {
	o.prunes++
	return o.err
}

// Promise 10: with --journal, nothing is released without a record in both places.
func TestFileHandsItsRecordsOn(t *testing.T) {
	also := &others{}
	j, err := Create(filepath.Join(t.TempDir(), "journal"), also)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(j.Write(t.Context(), aRun("run-1"), someRecords("a", 2)), j.Prune(t.Context())); err != nil {
		t.Fatal(err)
	}
	if also.records != 2 || also.prunes != 1 {
		t.Errorf("the others got %d records and %d calls of Prune, want 2 and 1", also.records, also.prunes)
	}
	also.err = errors.New("no such right")
	for name, err := range map[string]error{"Write": j.Write(t.Context(), aRun("run-1"), someRecords("b", 1)), "Prune": j.Prune(t.Context())} {
		if !errors.Is(err, also.err) {
			t.Errorf("%s = %v, want the error of the others", name, err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Write(t.Context(), aRun("run-1"), someRecords("c", 1)); err == nil || also.records != 3 {
		t.Errorf("Write to a file that is closed = %v, and the others got %d records, want an error and 3", err, also.records)
	}
}
