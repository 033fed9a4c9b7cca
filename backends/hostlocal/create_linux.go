package hostlocal

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// create makes a file with its content, permissions and modification time, all in one step. It
// fails with fs.ErrExist if the name is taken. The file has no name until it is complete,
// because the plugin reads every file of the folder. A crash leaves nothing behind.
func (d *folder) create(f file) error {
	perm := f.mode.Perm()
	made, err := d.OpenFile(".", unix.O_TMPFILE|os.O_WRONLY, perm)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) {
		return fmt.Errorf("the file system of %s cannot make a file without a name (O_TMPFILE): %w", d.path, err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = made.Close() }()
	if _, err := made.Write(f.content); err != nil {
		return err
	}
	if err := made.Chmod(perm); err != nil { // umask
		return err
	}
	self := fmt.Sprint("/proc/self/fd/", made.Fd())
	if err := os.Chtimes(self, f.mtime, f.mtime); err != nil {
		return err
	}
	if err := made.Sync(); err != nil {
		return err
	}
	dir, err := d.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := unix.Linkat(unix.AT_FDCWD, self, int(dir.Fd()), f.name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &os.PathError{Op: "create", Path: d.path + "/" + f.name, Err: err}
	}
	return nil
}
