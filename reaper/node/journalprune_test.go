package node

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// kept returns the minutes of the runs whose journals are there, and the other names.
func kept(t *testing.T, f *Folder) string {
	t.Helper()
	var all []string
	for _, name := range names(t, f.at(journalsName)) {
		name = strings.TrimSuffix(name, "00-ABCDEF.jsonl")
		all = append(all, strings.TrimPrefix(name, "20260301-12"))
	}
	return strings.Join(all, " ")
}

// Promise 10: Prune removes neither its own run's journal nor a later one.
func TestOldJournalsAreRemoved(t *testing.T) {
	for _, tt := range []struct {
		name      string
		retention journal.Retention
		own       int
		want      string
	}{
		{"both", journal.Retention{Runs: 4, For: time.Minute}, 5, "02 03 04 05"},
		{"later runs stay", journal.Retention{Runs: 1}, 2, "02 03 04 05"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFolder(t)
			for n := range 6 {
				if n != tt.own {
					journalOf(t, f, n, someRecords("a", 1))
				}
			}
			j := f.Journals(tt.retention)
			if err := j.Prune(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := len(names(t, f.at(journalsName))); got != 5 {
				t.Fatalf("%d journals after Prune before a Write, want all", got)
			}
			if err := errors.Join(j.Write(t.Context(), aRun(tt.own), someRecords("b", 1)), j.Prune(t.Context()), j.Close()); err != nil {
				t.Fatal(err)
			}
			equal(t, "journals", kept(t, f), tt.want)
		})
	}
}

// Promise 8: journals of killed runs do not pile up. A user's files stay.
func TestPruneRemovesWhatKilledRunsLeft(t *testing.T) {
	f := newFolder(t)
	put(t, fileOf(f, 1), nil)
	put(t, fileOf(f, 2), []byte("half of a"))
	for n := 1; n <= 2; n++ {
		at := aRun(n).StartedAt
		if err := os.Chtimes(fileOf(f, n), at, at); err != nil {
			t.Fatal(err)
		}
	}
	put(t, f.at(journalsName, "20260301-115900-ABCDEF.jsonl.bak"), nil)
	put(t, f.at(journalsName, "a-user-s.jsonl", "file"), nil)
	if err := os.Symlink("nothing", f.at(journalsName, "a-link.jsonl")); err != nil {
		t.Fatal(err)
	}
	j := f.Journals(journal.Retention{Runs: 2})
	if err := errors.Join(j.Write(t.Context(), aRun(3), someRecords("a", 1)), j.Prune(t.Context()), j.Close()); err != nil {
		t.Fatal(err)
	}
	equal(t, "names", kept(t, f), "20260301-115900-ABCDEF.jsonl.bak 02 03 a-link.jsonl a-user-s.jsonl")
}

func TestPruneMissesTheOwnJournal(t *testing.T) {
	f := newFolder(t)
	journalOf(t, f, 1, someRecords("a", 1))
	j := f.Journals(journal.Retention{})
	if err := errors.Join(j.Write(t.Context(), aRun(2), someRecords("a", 1)), os.Remove(fileOf(f, 2))); err != nil {
		t.Fatal(err)
	}
	if err := j.Prune(t.Context()); !errors.Is(err, journal.ErrNone) {
		t.Errorf("Prune = %v, want that the own journal is missing", err)
	}
	equal(t, "journals", kept(t, f), "01")
}
