package nodestate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// at returns a clock that stands still.
func at(now time.Time) func() time.Time { return func() time.Time { return now } }

func TestLockIsTakenByOneRunAtATime(t *testing.T) {
	f := newFolder(t)
	release, err := f.Lock(at(noon)).Acquire(t.Context(), "run-1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Lock(at(noon.Add(time.Hour))).Acquire(t.Context(), "run-2")
	var locked *reaper.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("Acquire = %v, want a LockedError", err)
	}
	equal(t, "error", *locked, reaper.LockedError{Holder: "run-1", Since: noon, Lock: "file " + filepath.Join(f.Path(), "lock")})
	release()
	release()
	again, err := f.Lock(at(noon)).Acquire(t.Context(), "run-2")
	if err != nil {
		t.Fatalf("Acquire after the release: %v", err)
	}
	again()
}

// A run that was killed leaves its name, and no lock.
func TestContentOfTheFileIsNoLock(t *testing.T) {
	for name, content := range map[string]string{
		"the holder": `{"holder":"run-0","since":"2026-03-01T12:00:00Z"}`, "longer than the next": strings.Repeat("x", 10_000), "nothing": "", "half": `{"hol`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t)
			put(t, f.at(lockName), []byte(content))
			release, err := f.Lock(at(noon)).Acquire(t.Context(), "run-1")
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			_, err = f.Lock(at(noon)).Acquire(t.Context(), "run-2")
			if err == nil || !strings.HasPrefix(err.Error(), "run-1 has been running since 2026-03-01T12:00:00Z") {
				t.Errorf("Acquire = %v, want that run-1 has the lock", err)
			}
		})
	}
}

// Between the lock and the write of its content, no name is known.
func TestHolderWithoutANameHasTheLock(t *testing.T) {
	for name, content := range map[string]string{"nothing": "", "half": `{"hol`, "no object": `7`, "long": strings.Repeat(" ", 2*maxLock)} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t)
			release, err := f.Lock(at(noon)).Acquire(t.Context(), "run-1")
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			put(t, f.at(lockName), []byte(content)) // as a write to the same file
			if err := os.Chtimes(f.at(lockName), noon, noon); err != nil {
				t.Fatal(err)
			}
			_, err = f.Lock(at(noon.Add(time.Hour))).Acquire(t.Context(), "run-2")
			var locked *reaper.LockedError
			if !errors.As(err, &locked) || locked.Holder != "another run" || !locked.Since.Equal(noon) {
				t.Errorf("Acquire = %v, want that another run has had the lock since the last write", err)
			}
		})
	}
}

// A user who removes the file of a lock that is held does not free the lock of the next file.
func TestRemovedFileIsMadeAgain(t *testing.T) {
	f := newFolder(t)
	first, err := f.Lock(at(noon)).Acquire(t.Context(), "run-1")
	if err != nil {
		t.Fatal(err)
	}
	defer first()
	if err := os.Remove(f.at(lockName)); err != nil {
		t.Fatal(err)
	}
	second, err := f.Lock(at(noon)).Acquire(t.Context(), "run-2")
	if err != nil {
		t.Fatal(err)
	}
	defer second()
	first()
	_, err = f.Lock(at(noon)).Acquire(t.Context(), "run-3")
	if err == nil || !strings.HasPrefix(err.Error(), "run-2 ") {
		t.Errorf("Acquire = %v, want that run-2 has the lock", err)
	}
}

func TestLockIsNotTakenAfterTheEndOfTheContext(t *testing.T) {
	f := newFolder(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Lock(at(noon)).Acquire(ctx, "run-1"); !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire = %v, want that the context has ended", err)
	}
}
