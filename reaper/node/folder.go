// Package node keeps the state of a node in files of one folder: the ledger, the journals
// and the lock. A process that is killed at any instruction leaves files that the next one
// reads, or says are damaged.
//
// Every file is a regular file that only its owner can read. No symbolic link is followed.
package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// DefaultFolder is where a node's state is, unless a flag says otherwise.
const DefaultFolder = "/var/lib/ip-reaper"

// A Folder has the state of one node. The first write makes it; no read does. It is safe
// for concurrent use.
type Folder struct{ path string }

// NewFolder returns the folder at a path. It reads and writes nothing.
func NewFolder(path string) *Folder { return &Folder{filepath.Clean(path)} }

// Path returns the path of the folder.
func (f *Folder) Path() string { return f.path }

// Check returns an *ipam.InputError if the state cannot be kept here: it is not a folder, or
// others own it or may write to it. It returns nil for a folder that does not exist yet.
func (f *Folder) Check() error {
	root, err := f.open(existing)
	if err != nil {
		return unlessAbsent(err)
	}
	return root.Close()
}

// at returns the path of a file in the folder, for messages.
func (f *Folder) at(name ...string) string {
	return filepath.Join(append([]string{f.path}, name...)...)
}

// A mode says what open does if there is no folder of that name.
type mode int

const (
	existing mode = iota // fail, with an error that wraps fs.ErrNotExist
	made                 // make it
)

// open opens the folder, which must be as Check requires, or with names a folder below it.
func (f *Folder) open(m mode, below ...string) (*os.Root, error) {
	path := filepath.Dir(f.path)
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, f.unusable(fmt.Errorf("%s: %w", f.path, err))
	}
	for _, name := range append([]string{filepath.Base(f.path)}, below...) {
		folder, err := openFolder(root, name, m)
		path = filepath.Join(path, name)
		if err := errors.Join(err, root.Close()); err != nil {
			return nil, f.unusable(fmt.Errorf("%s: %w", path, err))
		}
		root = folder
	}
	return root, nil
}

// openFolder opens a folder in another one. It must not be a symbolic link, belong to another
// user but root, or be writable by others.
func openFolder(above *os.Root, name string, m mode) (*os.Root, error) {
	if m == made {
		err := above.Mkdir(name, 0o700)
		if err == nil {
			err = syncFolder(above)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	named, err := above.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !named.IsDir() {
		return nil, errNoFolder
	}
	root, err := above.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	switch {
	case err != nil:
	case !os.SameFile(named, opened):
		err = errNoFolder
	case opened.Mode().Perm()&0o022 != 0:
		err = errOpenToOthers
	case !ofRootOrSelf(opened):
		err = errOfAnother
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

var (
	errNoFolder     = errors.New("it is not a folder, or is a symbolic link to one")
	errOpenToOthers = errors.New("other users may write into this folder")
	errOfAnother    = errors.New("the folder belongs to another user")
)

// ofRootOrSelf reports whether a file belongs to root, or to the user of this process.
func ofRootOrSelf(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}

// unusable returns the error as an *ipam.InputError if nothing can be written to the folder
// until the user changes something.
func (f *Folder) unusable(err error) error {
	hint := "name another one with --state-dir"
	switch {
	case errors.Is(err, errOpenToOthers):
		hint = "chmod go-w " + f.path
	case errors.Is(err, errOfAnother):
		hint = "chown root " + f.path + ", or name another one with --state-dir"
	case errors.Is(err, errNoFolder), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EROFS):
	case errors.Is(err, fs.ErrNotExist):
		hint = "make the folder above it, or name another one with --state-dir"
	case errors.Is(err, fs.ErrPermission):
		hint = "run as root, or name another one with --state-dir"
	default:
		return err
	}
	return ipam.BadInput(fmt.Errorf("the state folder: %w", err), hint)
}

// syncFolder makes the names in a folder survive a crash of the machine.
func syncFolder(root *os.Root) error {
	folder, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// errNotRegular is the error for a symbolic link, a folder, a pipe or a device.
var errNotRegular = errors.New("it is not a regular file: remove it")

// openRegular opens a file in a folder. With os.O_CREATE, it makes a file that only its owner
// can read.
func openRegular(root *os.Root, name string, flags int) (*os.File, error) {
	// Opening a pipe waits for its other end.
	if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, errNotRegular
	}
	file, err := root.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	opened, err := file.Stat()
	if err == nil && !opened.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// remove removes a file, if it exists.
func remove(root *os.Root, name string) error { return unlessAbsent(root.Remove(name)) }

// unlessAbsent returns an error, unless it says that a file or a folder does not exist.
func unlessAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// errTaken says that another process, or another part of this one, holds the lock.
var errTaken = errors.New("the lock is taken")

// flock takes the lock of an open file or folder, without waiting. The kernel releases the lock
// when the file is closed, and so even when the process is killed.
func flock(file *os.File) error {
	for {
		switch err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errTaken
		case !errors.Is(err, syscall.EINTR):
			return err
		}
	}
}

const (
	lockName = "lock"
	maxLock  = 4 << 10 // bytes of the content that are read
)

// Lock is a file whose lock a run holds until it ends. It implements reaper.Lock, and is safe
// for concurrent use. The kernel releases the lock when the process ends, so that a killed run
// does not block others. The content of the file is a line that names the holder. It is for
// messages: a file whose lock is not taken is free, no matter what it says.
type Lock struct {
	folder *Folder
	held   atomic.Pointer[heldLock] // nil before the first Acquire
}

// A heldLock has the folder and the file of a lock that was taken.
type heldLock struct{ root, file fs.FileInfo }

// Lock returns the lock of the folder.
func (f *Folder) Lock() *Lock { return &Lock{folder: f} }

// Acquire implements reaper.Lock. It makes the folder if there is none. A second call of
// release does nothing.
func (l *Lock) Acquire(ctx context.Context, holder string) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	root, err := l.folder.open(made)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	path := l.folder.at(lockName)
	file, err := openRegular(root, lockName, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, l.folder.unusable(fmt.Errorf("%s: %w", path, err))
	}
	err = flock(file)
	if errors.Is(err, errTaken) {
		defer func() { _ = file.Close() }()
		return nil, l.lockedBy(file)
	}
	if err == nil {
		err = l.remember(root, file)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	// On a full disk, the lock is held without the name of its holder.
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt([]byte(holder+"\n"), 0)
	}
	return sync.OnceFunc(func() {
		_ = file.Truncate(0)
		_ = file.Close()
	}), nil
}

// remember notes which folder and which file the lock was taken in, for Lapsed.
func (l *Lock) remember(root *os.Root, file *os.File) error {
	folder, err := root.Stat(".")
	info, fileErr := file.Stat()
	if err := cmp.Or(err, fileErr); err != nil {
		return err
	}
	l.held.Store(&heldLock{folder, info})
	return nil
}

// Lapsed implements reaper.Lock. The kernel keeps the lock, also while the process is stopped; but
// another run takes another lock once the path of the folder, or of the lock in it, names another one.
func (l *Lock) Lapsed() error {
	held := l.held.Load()
	if held == nil {
		return nil
	}
	root, err := l.folder.open(existing)
	if err != nil {
		return fmt.Errorf("the state folder was locked, and is there no more: %w", err)
	}
	defer func() { _ = root.Close() }()
	folder, err := root.Stat(".")
	file, fileErr := root.Lstat(lockName)
	err = cmp.Or(err, fileErr)
	if err == nil && (!os.SameFile(folder, held.root) || !os.SameFile(file, held.file)) {
		err = errReplaced
	}
	if err != nil {
		return fmt.Errorf("%s, which this run locked: %w", l.folder.at(lockName), err)
	}
	return nil
}

var errReplaced = errors.New("another one is in its place, which another run may lock")

// lockedBy returns the error that names the holder, and since when it has held the lock. If the
// file has no complete line, the run that holds the lock has just begun or is ending.
func (l *Lock) lockedBy(file *os.File) error {
	err := &reaper.LockedError{Holder: "another run", Lock: "file " + l.folder.at(lockName)}
	data, _ := io.ReadAll(io.NewSectionReader(file, 0, maxLock))
	if holder, whole := strings.CutSuffix(string(data), "\n"); whole && holder != "" {
		err.Holder = holder
	}
	if info, statErr := file.Stat(); statErr == nil {
		err.Since = info.ModTime()
	}
	return err
}
