package node

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

// Promise 4: grace periods rest on what earlier runs saved.
func TestLedgerIsLoadedAsItWasSaved(t *testing.T) {
	f := newFolder(t)
	for _, n := range []int{1, 300, 0, 3} {
		want := ledgerOf(t, n, n)
		if err := save(t.Context(), f, want); err != nil {
			t.Fatal(err)
		}
		wantStored(t, f, want)
	}
	equal(t, "files", names(t, f.Path()), []string{"ledger"})
}

// Promise 8: if two runs save at the same time, the second one loads again.
func TestSaveOverwritesNothingThatWasNotLoaded(t *testing.T) {
	mine, theirs := ledgerOf(t, 0, 2), ledgerOf(t, 2, 2)
	for _, tt := range []struct {
		name   string
		before func(*Folder) error // before the Load
		load   bool
		then   func(*Folder) error // between Load and Save
	}{
		{"a ledger that another run made", nil, true, func(f *Folder) error { return save(t.Context(), f, theirs) }},
		{"a ledger that another run changed", func(f *Folder) error { return save(t.Context(), f, mine) }, true,
			func(f *Folder) error { return save(t.Context(), f, theirs) }},
		{"a ledger that was removed", func(f *Folder) error { return save(t.Context(), f, theirs) }, true,
			func(f *Folder) error { return os.Remove(f.at(ledgerName)) }},
		{"a ledger that was damaged", func(f *Folder) error { return save(t.Context(), f, theirs) }, true,
			func(f *Folder) error { return os.WriteFile(f.at(ledgerName), []byte("junk"), 0o600) }},
		{"a ledger that was never loaded", func(f *Folder) error { return save(t.Context(), f, theirs) }, false, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFolder(t)
			l := f.Ledgers()
			if tt.before != nil {
				if err := tt.before(f); err != nil {
					t.Fatal(err)
				}
			}
			if tt.load {
				if _, err := l.Load(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if tt.then != nil {
				if err := tt.then(f); err != nil {
					t.Fatal(err)
				}
			}
			was, _ := os.ReadFile(f.at(ledgerName))
			if err := l.Save(t.Context(), mine); !errors.Is(err, ipam.ErrAgain) || !strings.Contains(err.Error(), f.at(ledgerName)) {
				t.Errorf("Save = %v, want ErrAgain that names the file", err)
			}
			now, _ := os.ReadFile(f.at(ledgerName))
			equal(t, "the file", string(now), string(was))
			if _, err := l.Load(t.Context()); err != nil && !errors.Is(err, ledger.ErrDamaged) {
				t.Fatal(err)
			}
			if err := l.Save(t.Context(), mine); err != nil {
				t.Errorf("Save after another Load: %v", err)
			}
			wantStored(t, f, mine)
		})
	}
}

// Promise 2: a ledger that cannot be decoded is reported, and the next Save replaces it.
func TestDamagedLedgerIsTold(t *testing.T) {
	whole := ledgerOf(t, 0, 100).Encode()
	for name, content := range map[string][]byte{"nothing in it": {}, "cut short": whole[:len(whole)-1], "text": []byte("ledger\n")} {
		t.Run(name, func(t *testing.T) {
			f := newFolder(t)
			put(t, f.at(ledgerName), content)
			l := f.Ledgers()
			got, err := l.Load(t.Context())
			if !errors.Is(err, ledger.ErrDamaged) || !strings.HasPrefix(err.Error(), f.at(ledgerName)+": ") || got.Len() != 0 {
				t.Fatalf("Load = %d entries, %v, want damage that names the file", got.Len(), err)
			}
			want := ledgerOf(t, 0, 3)
			if err := l.Save(t.Context(), want); err != nil {
				t.Fatal(err)
			}
			wantStored(t, f, want)
		})
	}
}

// Promises 2 and 6: what a later version wrote is neither read nor replaced, nor does it count
// as damage.
func TestLedgerOfALaterVersionIsNotReplaced(t *testing.T) {
	f := newFolder(t)
	body := ledgerOf(t, 0, 100).Encode()
	body = body[:len(body)-crc32.Size]
	body[0]++
	newer := binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body))
	put(t, f.at(ledgerName), newer)
	l := f.Ledgers()
	got, load := l.Load(t.Context())
	if !errors.Is(load, ledger.ErrNewer) || errors.Is(load, ledger.ErrDamaged) || !strings.HasPrefix(load.Error(), f.at(ledgerName)+": ") {
		t.Errorf("Load = %v, want that a newer version wrote the file", load)
	}
	if err := l.Save(t.Context(), ledgerOf(t, 0, 3)); !errors.Is(err, ipam.ErrAgain) {
		t.Errorf("Save = %v, want ErrAgain", err)
	}
	equal(t, "entries", got.Len(), 0)
	now, err := os.ReadFile(f.at(ledgerName))
	equal(t, "error", err, nil)
	equal(t, "the file", now, newer)
	equal(t, "files", names(t, f.Path()), []string{ledgerName})
}

// A huge file would fill the node's memory.
func TestLedgerOfAnySizeIsNotRead(t *testing.T) {
	f := newFolder(t)
	put(t, f.at(ledgerName), nil)
	if err := os.Truncate(f.at(ledgerName), 1<<40); err != nil {
		t.Skipf("SKIPPED: this file system has no file of 1 TiB: %v", err)
	}
	l := f.Ledgers()
	if _, err := l.Load(t.Context()); !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), "at most 8355840 bytes are read") {
		t.Fatalf("Load = %v, want damage that has the size", err)
	}
	if err := l.Save(t.Context(), ledgerOf(t, 0, 1)); err != nil {
		t.Fatal(err)
	}
	wantStored(t, f, ledgerOf(t, 0, 1))
}

// Promise 8: files left by a killed run do not block other runs.
func TestLeftoversOfARunThatWasKilled(t *testing.T) {
	before, after := ledgerOf(t, 0, 2), ledgerOf(t, 0, 3)
	for _, tt := range []struct {
		name string
		make func(*Folder) error
	}{
		{"half of a new ledger", func(f *Folder) error { return os.WriteFile(f.at(ledgerNew), after.Encode()[:20], 0o600) }},
		{"a link in place of a new ledger", func(f *Folder) error { return os.Symlink("/dev/full", f.at(ledgerNew)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFolder(t)
			if err := errors.Join(save(t.Context(), f, before), tt.make(f)); err != nil {
				t.Fatal(err)
			}
			wantStored(t, f, before)
			if err := save(t.Context(), f, after); err != nil {
				t.Fatal(err)
			}
			wantStored(t, f, after)
			if _, err := os.Lstat(f.at(ledgerNew)); err == nil {
				t.Error("the new ledger is still there")
			}
		})
	}
}

// Another process that holds the writers' lock delays a Save, which waits no longer than its
// context.
func TestSaveWaitsForAnotherWriter(t *testing.T) {
	f := newFolder(t)
	l := f.Ledgers()
	if err := l.Save(t.Context(), ledgerOf(t, 0, 1)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	writer, err := (&Ledgers{folder: f}).lock(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*lockRetry)
	defer cancel()
	if err := l.Save(ctx, ledgerOf(t, 0, 2)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Save beside a writer = %v, want that the context has ended", err)
	}
	saved := make(chan error)
	go func() { saved <- l.Save(t.Context(), ledgerOf(t, 0, 2)) }()
	if err := errors.Join(writer.Close(), <-saved); err != nil {
		t.Error(err)
	}
	wantStored(t, f, ledgerOf(t, 0, 2))
}

// Promise 1. A run goes by the ledger that it loaded or saved last: another one may hold what this run is
// about to release.
func TestLedgerThatAnotherWroteIsChanged(t *testing.T) {
	const gone = "gone"
	for _, tt := range []struct {
		name   string
		before func(f *Folder, l *Ledgers) error
		do     func(f *Folder) error
		want   string
	}{
		{"as loaded", nil, func(*Folder) error { return nil }, "false"},
		{"as saved", func(_ *Folder, l *Ledgers) error { return l.Save(t.Context(), ledgerOf(t, 2, 2)) }, func(*Folder) error { return nil }, "false"},
		{"another run saved", nil, func(f *Folder) error { return save(t.Context(), f, ledgerOf(t, 3, 3)) }, "true"},
		{"it is damaged", nil, func(f *Folder) error { return os.WriteFile(f.at(ledgerName), []byte("junk"), 0o600) }, "true"},
		{"it was removed", nil, func(f *Folder) error { return os.Remove(f.at(ledgerName)) }, gone},
		{"the folder was removed", nil, func(f *Folder) error { return os.RemoveAll(f.Path()) }, gone},
		{"there was none", func(f *Folder, l *Ledgers) error {
			return errors.Join(os.Remove(f.at(ledgerName)), reload(t, l))
		}, func(*Folder) error { return nil }, "false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFolder(t)
			if err := save(t.Context(), f, ledgerOf(t, 1, 1)); err != nil {
				t.Fatal(err)
			}
			l := f.Ledgers()
			err := reload(t, l)
			if tt.before != nil {
				err = errors.Join(err, tt.before(f, l))
			}
			if err := errors.Join(err, tt.do(f)); err != nil {
				t.Fatal(err)
			}
			changed, err := l.Changed(t.Context())
			got := fmt.Sprint(changed)
			if err != nil {
				got = gone
			}
			equal(t, "changed", got, tt.want)
		})
	}
}

func reload(t *testing.T, l *Ledgers) error {
	_, err := l.Load(t.Context())
	return err
}
