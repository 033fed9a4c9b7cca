package node

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// fileOf returns the path of the journal of the nth run.
func fileOf(f *Folder, n int) string { return f.at(journalsName, aRun(n).ID+journalEnd) }

// Promise 10.
func TestJournalIsReadAsItWasWritten(t *testing.T) {
	f := newFolder(t)
	first, second := someRecords("a", 5), someRecords("b", 3)
	journalOf(t, f, 1, first, nil, second)
	want := journal.Journal{Run: aRun(1), Records: append(first, second...), Writes: []int{5, 3}}
	for _, id := range []string{aRun(1).ID, strings.ToLower(aRun(1).ID)} {
		got, err := f.Journals(journal.Retention{}).Read(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "journal", got, want)
	}
}

// Promise 10: the file of a run is the only way to undo it.
func TestJournalOfAnotherRunIsNotWrittenInto(t *testing.T) {
	f := newFolder(t)
	journalOf(t, f, 1, someRecords("a", 1))
	j := f.Journals(journal.Retention{})
	if err := j.Write(t.Context(), aRun(1), someRecords("b", 1)); !errors.Is(err, os.ErrExist) {
		t.Errorf("Write = %v, want that the file exists", err)
	}
	got, err := j.Read(t.Context(), aRun(1).ID)
	if err != nil || len(got.Records) != 1 || got.Records[0].Key != "a0" {
		t.Errorf("Read = %v, %v, want the first journal", got, err)
	}
}

// An ID becomes the name of a file, so it must not lead out of the folder.
func TestJournalIsOfARunOnly(t *testing.T) {
	f := newFolder(t)
	for _, id := range []string{"", "..", "../ledger", "a/b", strings.Repeat("x", 300), "run\x00"} {
		run := aRun(1)
		run.ID = id
		if err := f.Journals(journal.Retention{}).Write(t.Context(), run, someRecords("a", 1)); err == nil || !strings.Contains(err.Error(), "not the ID of a run") {
			t.Errorf("Write of run %q = %v, want that this is no ID", id, err)
		}
	}
	if _, err := os.Lstat(f.Path()); err == nil {
		t.Error("there is a folder")
	}
}

// A *journal.UnfitError promises that the other records can be written. If there are none, the
// file is empty, and the run is not listed.
func TestRecordsThatDoNotFitAreNotWritten(t *testing.T) {
	f := newFolder(t)
	j := f.Journals(journal.Retention{})
	records := someRecords("a", 3)
	records[1].Stored = []byte("no JSON")
	err := j.Write(t.Context(), aRun(1), records)
	var unfit *journal.UnfitError
	if !errors.As(err, &unfit) || len(unfit.Records) != 1 || unfit.Records[1] == nil {
		t.Fatalf("Write = %v, want that the second record does not fit", err)
	}
	if _, err := j.Read(t.Context(), aRun(1).ID); !errors.Is(err, journal.ErrNone) {
		t.Errorf("Read = %v, want that there is no journal", err)
	}
	if err := errors.Join(j.Write(t.Context(), aRun(1), slices.Delete(records, 1, 2)), j.Prune(t.Context()), j.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := j.Read(t.Context(), aRun(1).ID)
	if err != nil || len(got.Records) != 2 {
		t.Errorf("Read = %d records, %v, want the two that fit", len(got.Records), err)
	}
}

// An ID typed by a user reads no other file.
func TestRunIsNoPath(t *testing.T) {
	f := newFolder(t)
	journalOf(t, f, 1, someRecords("a", 1))
	put(t, f.at("run.jsonl"), nil)
	for _, id := range []string{"", "../run"} {
		if _, err := f.Journals(journal.Retention{}).Read(t.Context(), id); !errors.Is(err, journal.ErrNone) || !strings.Contains(err.Error(), f.at(journalsName)+": ") {
			t.Errorf("Read of %q = %v, want that there is no journal of it in the folder", id, err)
		}
	}
}

// The latest run is what --run=latest puts back.
func TestHistoryListsTheLatestRunFirst(t *testing.T) {
	f := newFolder(t)
	other := someRecords("a", 3)
	other[0].Pool = "podman"
	for n, records := range [][]ipam.Record{someRecords("a", 2), other, append(someRecords("b", 1), someRecords("b", 1)...)} {
		journalOf(t, f, n, records)
	}
	if err := os.Chtimes(fileOf(f, 0), noon, noon.Add(time.Hour)); err != nil { // a file that was copied
		t.Fatal(err)
	}
	put(t, fileOf(f, 3), nil)                         // a run that was killed before its first write
	put(t, f.at(journalsName, "notes.txt"), nil)      // a user's
	put(t, f.at(journalsName, "a.b.jsonl", "x"), nil) // and a folder
	runs, warnings, err := f.Journals(journal.Retention{}).List(t.Context())
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	equal(t, "runs", runs, []journal.PastRun{
		{Run: aRun(2), Recorded: 1, Addresses: 1, Pools: []journal.PoolRecord{{Backend: "hostlocal", Pool: "kindnet", Recorded: 1}}},
		{Run: aRun(1), Recorded: 3, Addresses: 2, Pools: []journal.PoolRecord{
			{Backend: "hostlocal", Pool: "kindnet", Recorded: 2}, {Backend: "hostlocal", Pool: "podman", Recorded: 1},
		}},
		{Run: aRun(0), Recorded: 2, Addresses: 1, Pools: []journal.PoolRecord{{Backend: "hostlocal", Pool: "kindnet", Recorded: 2}}},
	})
}

// Promise 10: what can be read can be put back, and the rest is reported.
func TestDamagedJournalIsToldAndTheRestIsRead(t *testing.T) {
	f := newFolder(t)
	journalOf(t, f, 1, someRecords("a", 2), someRecords("b", 2))
	whole, err := os.ReadFile(fileOf(f, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		content []byte
		want    int // records
	}{
		{"the last write is torn", whole[:len(whole)-9], 2},
		{"another run's", []byte(strings.ReplaceAll(string(whole), aRun(1).ID, aRun(2).ID)), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			put(t, fileOf(f, 1), tt.content)
			j := f.Journals(journal.Retention{})
			got, err := j.Read(t.Context(), aRun(1).ID)
			if !errors.Is(err, journal.ErrDamaged) || len(got.Records) != tt.want {
				t.Errorf("Read = %d records, %v, want %d, and damage", len(got.Records), err, tt.want)
			}
			runs, warnings, err := j.List(t.Context())
			if err != nil || !strings.Contains(strings.Join(warnings, ""), aRun(1).ID+".jsonl, line ") || len(runs) != min(tt.want, 1) {
				t.Errorf("List = %v, %q, %v, want a warning that names the line", runs, warnings, err)
			}
		})
	}
}
