package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
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

// Promise 1. A run that was stopped has its lock for ever. If the folder that it locked is not the one at
// the path any more, another run takes another lock meanwhile.
func TestLockLapsesIfTheFolderIsReplaced(t *testing.T) {
	for _, tt := range []struct {
		name   string
		do     func(f *Folder) error
		lapses bool
	}{
		{"nothing", func(*Folder) error { return nil }, false},
		{"another run fails to take it", func(f *Folder) error {
			_, err := f.Lock().Acquire(t.Context(), "run-2")
			if locked := (*reaper.LockedError)(nil); !errors.As(err, &locked) {
				return errors.New("it takes it")
			}
			return nil
		}, false},
		{"another ledger", func(f *Folder) error { return save(t.Context(), f, ledgerOf(t, 1, 1)) }, false},
		{"the folder is gone", func(f *Folder) error { return os.RemoveAll(f.Path()) }, true},
		{"the folder is another one", func(f *Folder) error {
			return errors.Join(os.Rename(f.Path(), f.Path()+".old"), os.Mkdir(f.Path(), 0o700))
		}, true},
		{"the folder is a copy", func(f *Folder) error {
			return errors.Join(os.Rename(f.Path(), f.Path()+".old"), os.CopyFS(f.Path(), os.DirFS(f.Path()+".old")))
		}, true},
		{"the folder is a link to itself", func(f *Folder) error {
			return errors.Join(os.Rename(f.Path(), f.Path()+".old"), os.Symlink(f.Path()+".old", f.Path()))
		}, true},
		{"the lock is gone", func(f *Folder) error { return os.Remove(f.at(lockName)) }, true},
		{"the lock is another file", func(f *Folder) error {
			return errors.Join(os.Rename(f.at(lockName), f.at("old")), os.WriteFile(f.at(lockName), nil, 0o600))
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFolder(t)
			lock := f.Lock()
			if err := lock.Lapsed(); err != nil {
				t.Errorf("before it is taken: %v", err)
			}
			release, err := lock.Acquire(t.Context(), "run-1")
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			if err := tt.do(f); err != nil {
				t.Fatal(err)
			}
			if err := lock.Lapsed(); (err != nil) != tt.lapses || errors.Is(err, ipam.ErrAgain) {
				t.Errorf("Lapsed = %v, want an error: %v", err, tt.lapses)
			}
		})
	}
}
