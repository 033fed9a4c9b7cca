package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// Promise 5: readers do not make the folder either.
func TestReadersMakeNoFolder(t *testing.T) {
	f := newFolder(t)
	ledger, err := f.Ledgers().Load(t.Context())
	if err != nil || ledger.Len() != 0 {
		t.Errorf("Load = %d entries, %v, want none", ledger.Len(), err)
	}
	j := f.Journals(journal.Retention{})
	runs, warnings, err := j.List(t.Context())
	if len(runs)+len(warnings) > 0 || err != nil {
		t.Errorf("List = %v, %v, %v, want nothing", runs, warnings, err)
	}
	if _, err := j.Read(t.Context(), "run-1"); !errors.Is(err, journal.ErrNone) {
		t.Errorf("Read = %v, want that there is no journal", err)
	}
	if err := errors.Join(j.Prune(t.Context()), j.Close(), f.Check()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(f.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder: %v, want that nothing made it", err)
	}
}

// The journals show what leases show: which pods there are, and their addresses.
func TestOnlyTheOwnerMayReadTheState(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	f := newFolder(t)
	release, err := f.Lock().Acquire(t.Context(), "run-1")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := save(t.Context(), f, ledgerOf(t, 0, 1)); err != nil {
		t.Fatal(err)
	}
	journalOf(t, f, 1, someRecords("a", 1))
	got := map[string]fs.FileMode{}
	err = filepath.WalkDir(f.Path(), func(path string, _ fs.DirEntry, err error) error {
		info, statErr := os.Lstat(path)
		if err := errors.Join(err, statErr); err != nil {
			return err
		}
		name, err := filepath.Rel(f.Path(), path)
		got[name] = info.Mode()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "modes", got, map[string]fs.FileMode{
		".": fs.ModeDir | 0o700, "journals": fs.ModeDir | 0o700, "journals/" + aRun(1).ID + ".jsonl": 0o600,
		"ledger": 0o600, "lock": 0o600,
	})
}

// every calls all methods that open the folder, and returns their errors by name.
func every(t *testing.T, f *Folder) map[string]error {
	t.Helper()
	j := f.Journals(journal.Retention{})
	_, load := f.Ledgers().Load(t.Context())
	_, read := j.Read(t.Context(), "run-1")
	_, _, list := j.List(t.Context())
	release, lock := f.Lock().Acquire(t.Context(), "run-1")
	if lock == nil {
		release()
	}
	return map[string]error{
		"Check": f.Check(), "Load": load, "Save": f.Ledgers().Save(t.Context(), ledgerOf(t, 0, 1)), "Read": read, "List": list,
		"Acquire": lock, "Write": j.Write(t.Context(), aRun(1), someRecords("a", 1)),
	}
}

// Any user who can write to the folder can end grace periods, and make a restore write leases.
func TestFolderThatIsNotSafeIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(t *testing.T, path string) error
		want string
	}{
		{"writable for all", func(_ *testing.T, path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o707))
		}, "other users may write"},
		{"writable for a group", func(_ *testing.T, path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o720))
		}, "other users may write"},
		{"of another user", func(t *testing.T, path string) error {
			if os.Geteuid() != 0 {
				t.Skip("SKIPPED: only root can give a folder to another user")
			}
			return errors.Join(os.Mkdir(path, 0o700), os.Chown(path, 12345, 12345))
		}, "belongs to another user"},
		{"a file", func(_ *testing.T, path string) error { return os.WriteFile(path, nil, 0o600) }, "not a folder"},
		{"a link to a folder", func(t *testing.T, path string) error { return os.Symlink(t.TempDir(), path) }, "symbolic link"},
		{"a link to nothing", func(_ *testing.T, path string) error { return os.Symlink("nothing", path) }, "symbolic link"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFolder(t)
			if err := tt.make(t, f.Path()); err != nil {
				t.Fatal(err)
			}
			for method, err := range every(t, f) {
				wantInput(t, err, f.Path())
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: %v, want %q", method, err, tt.want)
				}
			}
		})
	}
}

// The DaemonSet's hostPath is made with mode 0755.
func TestFolderThatOthersMayReadIsTaken(t *testing.T) {
	f := newFolder(t)
	if err := errors.Join(os.Mkdir(f.Path(), 0o700), os.Chmod(f.Path(), 0o755)); err != nil {
		t.Fatal(err)
	}
	for method, err := range every(t, f) {
		if err != nil && method != "Read" { // which finds no such run
			t.Errorf("%s: %v", method, err)
		}
	}
}

// Promise 1 must not rest on files elsewhere: a link is an error that names it.
func TestNoLinkIsFollowed(t *testing.T) {
	for _, name := range []string{"ledger", "lock", "journals", "journals/" + aRun(1).ID + ".jsonl"} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t)
			link := filepath.Join(f.Path(), name)
			victim := filepath.Join(t.TempDir(), "victim")
			put(t, victim, []byte("precious"))
			if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(victim, link)); err != nil {
				t.Fatal(err)
			}
			failed := ""
			for _, err := range every(t, f) {
				if err != nil && strings.Contains(err.Error(), link) {
					failed = err.Error()
				}
			}
			if failed == "" {
				t.Errorf("no error names %s: %v", link, every(t, f))
			}
			if content, err := os.ReadFile(victim); err != nil || string(content) != "precious" {
				t.Errorf("the file behind the link has %q, %v", content, err)
			}
		})
	}
}

// Promise 6: what could not be read may be a ledger, and is not replaced. A pipe has no writer, so
// opening it would not return.
func TestWhatIsNoFileIsAnError(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a folder": func(path string) error { return os.MkdirAll(filepath.Join(path, "folder"), 0o700) },
	} {
		f := newFolder(t)
		if err := errors.Join(os.Mkdir(f.Path(), 0o700), make(f.at(ledgerName)), make(f.at(lockName))); err != nil {
			t.Fatal(err)
		}
		l := f.Ledgers()
		_, load := l.Load(t.Context())
		_, lock := f.Lock().Acquire(t.Context(), "run-1")
		for _, one := range []struct {
			file string
			err  error
		}{{ledgerName, load}, {ledgerName, l.Save(t.Context(), ledgerOf(t, 0, 1))}, {lockName, lock}} {
			err := one.err
			if err == nil || errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ipam.ErrAgain) ||
				!strings.Contains(err.Error(), f.at(one.file)+": it is not a regular file") {
				t.Errorf("%s: %v, want that %s is not a regular file", name, err, one.file)
			}
		}
	}
}
