package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Two runs at the same time would each fail what the other one releases.
func TestLockIsTakenByOneRunAtATime(t *testing.T) {
	f := newFolder(t)
	release, err := f.Lock().Acquire(t.Context(), "run-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(f.at(lockName), noon, noon); err != nil { // as if it was taken at noon
		t.Fatal(err)
	}
	_, err = f.Lock().Acquire(t.Context(), "run-2")
	var locked *reaper.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("Acquire = %v, want a LockedError", err)
	}
	equal(t, "error", *locked, reaper.LockedError{Holder: "run-1", Since: noon, Lock: "file " + filepath.Join(f.Path(), "lock")})
	release()
	release()
	again, err := f.Lock().Acquire(t.Context(), "run-2")
	if err != nil {
		t.Fatalf("Acquire after the release: %v", err)
	}
	again()
}

// A run that was killed leaves its name, and no lock.
func TestContentOfTheFileIsNoLock(t *testing.T) {
	for name, content := range map[string]string{
		"the holder": "run-0\n", "longer than the next": strings.Repeat("x", 10_000), "nothing": "", "half": "run",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t)
			put(t, f.at(lockName), []byte(content))
			release, err := f.Lock().Acquire(t.Context(), "run-1")
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			_, err = f.Lock().Acquire(t.Context(), "run-2")
			if err == nil || !strings.HasPrefix(err.Error(), "run-1 has been running since 20") {
				t.Errorf("Acquire = %v, want that run-1 has the lock", err)
			}
		})
	}
}

// Between the lock and the write of its content, no name is known.
func TestHolderWithoutANameHasTheLock(t *testing.T) {
	for name, content := range map[string]string{"nothing": "", "half": "run", "no object": `7`, "long": strings.Repeat(" ", 2*maxLock)} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t)
			release, err := f.Lock().Acquire(t.Context(), "run-1")
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			put(t, f.at(lockName), []byte(content)) // as a write to the same file
			if err := os.Chtimes(f.at(lockName), noon, noon); err != nil {
				t.Fatal(err)
			}
			_, err = f.Lock().Acquire(t.Context(), "run-2")
			var locked *reaper.LockedError
			if !errors.As(err, &locked) || locked.Holder != "another run" || !locked.Since.Equal(noon) {
				t.Errorf("Acquire = %v, want that another run has had the lock since the last write", err)
			}
		})
	}
}
