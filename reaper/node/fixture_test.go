package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/ledgertest"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// equal fails the test unless it got what it wants.
func equal[T any](t *testing.T, what string, got, want T, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// newFolder returns a state folder that does not exist yet.
func newFolder(t *testing.T) *Folder {
	t.Helper()
	return NewFolder(filepath.Join(t.TempDir(), "state"))
}

// ledgerOf remembers n allocations, called from, from+1 and so on.
func ledgerOf(t testing.TB, from, n int) ledger.Ledger {
	t.Helper()
	seen := make(map[string]int64, n)
	for i := from; i < from+n; i++ {
		seen[ledgertest.Key(strconv.Itoa(i))] = 1_800_000_000 + int64(i)
	}
	l, err := ledger.Decode(ledgertest.Ledger{Seen: seen}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// save does what a run does: it loads, and replaces what it loaded.
func save(ctx context.Context, f *Folder, l ledger.Ledger) error {
	ledgers := f.Ledgers()
	if _, err := ledgers.Load(ctx); err != nil && !errors.Is(err, ledger.ErrDamaged) {
		return err
	}
	return ledgers.Save(ctx, l)
}

// wantStored checks that the next run loads this ledger, and nothing is damaged.
func wantStored(t *testing.T, f *Folder, want ledger.Ledger) {
	t.Helper()
	if got, err := f.Ledgers().Load(t.Context()); err != nil || !got.Equal(want) {
		t.Errorf("Load = %d entries, %v, want the %d that were saved", got.Len(), err, want.Len())
	}
}

// aRun is the nth run of a day.
func aRun(n int) journal.Run {
	at := noon.Add(time.Duration(n) * time.Minute)
	return journal.Run{ID: at.Format("20060102-150405-") + "ABCDEF", StartedAt: at, Version: "v1", Cluster: "node-1"}
}

// someRecords are n records whose keys begin with the word.
func someRecords(word string, n int) []ipam.Record {
	records := make([]ipam.Record, n)
	for i := range records {
		records[i] = ipam.Record{
			Backend: "hostlocal", Pool: "kindnet", Key: fmt.Sprint(word, i), IP: "10.0.0.1", Stored: fmt.Appendf(nil, `{"n":%d}`, i),
		}
	}
	return records
}

// journalOf writes the journal of the nth run.
func journalOf(t *testing.T, f *Folder, n int, writes ...[]ipam.Record) {
	t.Helper()
	j := f.Journals(journal.Retention{})
	for _, records := range writes {
		if err := j.Write(t.Context(), aRun(n), records); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// put writes a file behind the program's back, and makes its folder.
func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// names returns the names in a folder.
func names(t *testing.T, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// wantInput checks that an error is for the user to fix, and names a path.
func wantInput(t *testing.T, err error, path string) {
	t.Helper()
	var input *ipam.InputError
	if !errors.As(err, &input) || !strings.Contains(err.Error(), path) || input.Hint == "" {
		t.Errorf("%v, want an InputError with a hint that names %s", err, path)
	}
}
