package nodestate

import (
	"errors"
	"math/rand/v2"
	"os/exec"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// crashes is how many processes a test kills, each at another moment of its work.
const crashes = 40

// moment returns a time within which a child makes a few writes.
func moment() time.Duration { return rand.N(8 * time.Millisecond) }

// Promise 8: the ledger is the last one that was saved, or the one that the process was
// about to save when it was killed.
func TestLedgerSurvivesARunThatIsKilled(t *testing.T) {
	f := newFolder(t)
	for n := range crashes {
		// Each ledger has a number of entries of its own, in ascending order.
		have, err := f.Ledgers().Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		saved := killed(t, child(t, "ledgers", f, have.Len()+1), 1+n%3, moment())
		got, err := f.Ledgers().Load(t.Context())
		if err != nil || got.Len() != saved && got.Len() != saved+1 {
			t.Fatalf("Load = %d entries, %v, want the %d that were saved, or one more", got.Len(), err, saved)
		}
		if want := ledgerOf(t, 0, got.Len()); !got.Equal(want) {
			t.Fatalf("the ledger of %d entries is another one", got.Len())
		}
	}
}

// Promise 10: a journal whose Write returned is whole. What a killed process leaves beside
// it is a journal that says that it is not whole, and the next runs prune that.
func TestJournalsSurviveARunThatIsKilled(t *testing.T) {
	f := newFolder(t)
	next := 0
	for n := range crashes {
		last := killed(t, child(t, "journals", f, next), 1+n%3, moment())
		j := f.Journals(journal.Retention{})
		got, err := j.Read(t.Context(), aRun(last).ID)
		if err != nil || len(got.Records) != 40 {
			t.Fatalf("Read of the last whole journal = %d records, %v, want 40", len(got.Records), err)
		}
		got, err = j.Read(t.Context(), aRun(last+1).ID)
		whole := err == nil && (len(got.Records) == 20 || len(got.Records) == 40)
		if !whole && !errors.Is(err, reaper.ErrNoJournal) && !errors.Is(err, reaper.ErrJournalDamaged) {
			t.Fatalf("Read of the journal that was written = %d records, %v", len(got.Records), err)
		}
		if _, _, err := j.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		next = last + 2
	}
	// A torn journal is as old as its last write: years younger than noon.
	later := int(time.Since(noon).Minutes()) + 1
	j := f.Journals(journal.Retention{Runs: 3})
	if err := errors.Join(j.Write(t.Context(), aRun(later), someRecords("a", 1)), j.Prune(t.Context()), j.Close()); err != nil {
		t.Fatal(err)
	}
	if left := names(t, f.at(journalsName)); len(left) != 3 {
		t.Errorf("the next run leaves %q, want three journals", left)
	}
}

// Promise 8: the lock of a process that was killed is free.
func TestLockOfARunThatIsKilledIsFree(t *testing.T) {
	f := newFolder(t)
	cmd := child(t, "lock", f, 7)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	var locked *reaper.LockedError
	if _, err := f.Lock(at(noon)).Acquire(t.Context(), "run-1"); !errors.As(err, &locked) || locked.Holder != "run-7" {
		t.Errorf("Acquire = %v, want that run-7 has the lock", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	release, err := f.Lock(at(noon)).Acquire(t.Context(), "run-1")
	if err != nil {
		t.Fatalf("Acquire after the kill: %v", err)
	}
	release()
}

// Promise 8: what one of two processes saves, the other one does not lose.
func TestTwoProcessesLoseNothing(t *testing.T) {
	f := newFolder(t)
	var both []*exec.Cmd
	for n := range 2 {
		cmd := child(t, "merge", f, n*merges)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		both = append(both, cmd)
	}
	for _, cmd := range both {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	wantStored(t, f, ledgerOf(t, 0, 2*merges))
}
