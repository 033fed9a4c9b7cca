// Package nodestate keeps the state of a node in files of one folder: the ledger, the
// journals and the lock. A process that is killed at any instruction leaves files that the
// next one reads, or says are damaged.
//
// Every file is a regular file that only its owner may read. No symbolic link is followed.
package nodestate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// DefaultFolder is where the state of a node is, unless a flag says otherwise.
const DefaultFolder = "/var/lib/ip-reaper"

// A Folder has the state of one node. The first write makes it; no read does. It is safe
// for concurrent use.
type Folder struct{ path string }

// NewFolder returns the folder at a path. It reads and writes nothing.
func NewFolder(path string) *Folder { return &Folder{filepath.Clean(path)} }

// Path returns the path of the folder.
func (f *Folder) Path() string { return f.path }

// Check returns a *reaper.InputError if the state cannot be in this folder: it is no
// folder, or other users may write into it. It returns nil for a folder that does not
// exist yet.
func (f *Folder) Check() error {
	root, err := f.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = root.Close()
	}
	return err
}

// at returns the path of a file in the folder, for messages.
func (f *Folder) at(name ...string) string {
	return filepath.Join(append([]string{f.path}, name...)...)
}

// open opens the folder, which must be as Check wants it. The error wraps fs.ErrNotExist if
// it does not exist.
func (f *Folder) open() (*os.Root, error) {
	root, err := openFolder(f.path, f.path, os.Lstat, os.OpenRoot)
	if err != nil {
		return nil, badPlace(err, f.path)
	}
	return root, nil
}

// openOrMake opens the folder. If it does not exist, openOrMake makes it in the folder above.
func (f *Folder) openOrMake() (*os.Root, error) {
	if err := os.Mkdir(f.path, 0o700); err == nil {
		above, err := os.OpenRoot(filepath.Dir(f.path))
		if err != nil {
			return nil, err
		}
		if err := errors.Join(syncFolder(above), above.Close()); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, badPlace(err, f.path)
	}
	return f.open()
}

// openFolder opens a folder that is no symbolic link, and into which no other user may
// write. The path is for messages.
func openFolder(path, name string, lstat func(string) (fs.FileInfo, error), open func(string) (*os.Root, error)) (*os.Root, error) {
	named, err := lstat(name)
	if err != nil {
		return nil, err
	}
	if !named.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNoFolder}
	}
	root, err := open(name)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	switch {
	case err != nil:
	case !os.SameFile(named, opened):
		err = &fs.PathError{Op: "open", Path: path, Err: errNoFolder}
	case opened.Mode().Perm()&0o022 != 0:
		err = &fs.PathError{Op: "open", Path: path, Err: errOpenToOthers}
	case !ofRoot(opened) && !ofSelf(opened):
		err = &fs.PathError{Op: "open", Path: path, Err: errOfAnother}
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

func ofRoot(info fs.FileInfo) bool { return ownerOf(info) == 0 }

func ofSelf(info fs.FileInfo) bool { return ownerOf(info) == os.Geteuid() }

// ownerOf returns the ID of the user that a file belongs to; -1 if it is not known.
func ownerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

// badPlace returns an error as a *reaper.InputError if nothing can be written in the folder
// until the user changes something.
func badPlace(err error, folder string) error {
	hint := "name another one with --state-dir"
	switch {
	case errors.Is(err, errOpenToOthers):
		hint = "chmod go-w " + folder
	case errors.Is(err, errOfAnother):
		hint = "chown root " + folder + ", or name another one with --state-dir"
	case errors.Is(err, errNoFolder), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EROFS):
	case errors.Is(err, fs.ErrNotExist):
		hint = "make the folder above it, or name another one with --state-dir"
	case errors.Is(err, fs.ErrPermission):
		hint = "run as root, or name another one with --state-dir"
	default:
		return err
	}
	return reaper.BadInput(fmt.Errorf("the state folder: %w", err), hint)
}

// syncFolder makes the names in a folder survive a crash of the machine.
func syncFolder(root *os.Root) error {
	folder, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
