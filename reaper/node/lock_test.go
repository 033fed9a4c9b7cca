package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// Of two concurrent runs, each would fail to release what the other one has released.
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

// A killed run leaves its name, but no lock.
func TestContentOfTheFileIsNoLock(t *testing.T) {
	for name, content := range map[string]string{
		"the holder": "run-0\n", "longer than the next": strings.Repeat("x", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t)
			put(t, f.at(lockName), []byte(content))
			release, err := f.Lock().Acquire(t.Context(), "run-1")
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			wantHolder := func(want string) {
				t.Helper()
				_, err := f.Lock().Acquire(t.Context(), "run-2")
				var locked *reaper.LockedError
				if !errors.As(err, &locked) || locked.Holder != want {
					t.Errorf("Acquire = %v, want that %s has the lock", err, want)
				}
			}
			wantHolder("run-1")
			put(t, f.at(lockName), []byte("half")) // as before the holder wrote its name
			wantHolder("another run")
		})
	}
}
