package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
)

// mounted mounts a small in-memory file system for a test.
func mounted(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("node-test", path, "tmpfs", 0, "size=256k,mode=700"); err != nil {
		t.Skipf("SKIPPED, so that nothing shows what happens on a full or read-only disk: only root can mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fill writes a file until the disk is full. free makes room again.
func fill(t *testing.T, path string) (free func()) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// Promise 10: what is not on disk was not written, and what was there stays.
func TestFullDisk(t *testing.T) {
	f := newFolder(t)
	mounted(t, f.Path())
	before, after := ledgerOf(t, 0, 10), ledgerOf(t, 0, 1000)
	if err := save(t.Context(), f, before); err != nil {
		t.Fatal(err)
	}
	journalOf(t, f, 1, someRecords("a", 1))
	begun := f.Journals(journal.Retention{})
	if err := begun.Write(t.Context(), aRun(2), someRecords("a", 1)); err != nil {
		t.Fatal(err)
	}
	free := fill(t, filepath.Join(f.Path(), "filling"))

	if err := save(t.Context(), f, after); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), f.at(ledgerName)) {
		t.Errorf("Save = %v, want that the disk is full, and the name of the file", err)
	}
	wantStored(t, f, before)
	if _, err := os.Lstat(f.at(ledgerNew)); err == nil {
		t.Error("what did not fit takes up the rest of the disk")
	}
	j := f.Journals(journal.Retention{})
	for name, err := range map[string]error{
		"the first Write":   j.Write(t.Context(), aRun(3), someRecords("a", 100)),
		"the second Write":  begun.Write(t.Context(), aRun(2), someRecords("b", 100)),
		"a Write after one": begun.Write(t.Context(), aRun(2), someRecords("b", 1)),
	} {
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), f.at(journalsName)) {
			t.Errorf("%s = %v, want that the disk is full, and the name of the file", name, err)
		}
	}
	if err := begun.Close(); err != nil {
		t.Fatal(err)
	}
	equal(t, "journals", kept(t, f), "01 02 03")
	got, err := j.Read(t.Context(), aRun(2).ID)
	if err != nil || len(got.Records) != 1 {
		t.Errorf("Read = %d records, %v, want those of the write before", len(got.Records), err)
	}
	release, err := f.Lock().Acquire(t.Context(), "run-1")
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	var locked *reaper.LockedError
	if _, err := f.Lock().Acquire(t.Context(), "run-2"); !errors.As(err, &locked) {
		t.Errorf("Acquire = %v, want that the lock is taken", err)
	}
	release()

	free()
	if err := save(t.Context(), f, after); err != nil {
		t.Fatal(err)
	}
	wantStored(t, f, after)
	j = f.Journals(journal.Retention{})
	if err := errors.Join(j.Write(t.Context(), aRun(4), someRecords("a", 100)), j.Prune(t.Context()), j.Close()); err != nil {
		t.Fatal(err)
	}
	equal(t, "journals", kept(t, f), "04")
}
