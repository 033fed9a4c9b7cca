package nodestate

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// errNotRegular says that a name is that of a symbolic link, a folder, a pipe or a device.
var errNotRegular = errors.New("it is not a regular file: remove it")

// openRegular opens a file of a folder. With os.O_CREATE, it makes a file that only its
// owner may read. The file is open for reading, so that its lock can be taken and its
// content be read.
func openRegular(root *os.Root, name string, flags int) (*os.File, error) {
	// The opening of a pipe waits for its other end.
	if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, notRegular(root, name)
	}
	file, err := root.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	opened, err := file.Stat()
	if err == nil && !opened.Mode().IsRegular() {
		err = notRegular(root, name)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func notRegular(root *os.Root, name string) error {
	return &fs.PathError{Op: "open", Path: root.Name() + "/" + name, Err: errNotRegular}
}

// isNamed reports whether an open file is still the one of that name in the folder.
func isNamed(root *os.Root, name string, file *os.File) (bool, error) {
	opened, err := file.Stat()
	if err != nil {
		return false, err
	}
	named, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, named), err
}

// errTaken says that another process, or another part of this one, has the lock of a file.
var errTaken = errors.New("the lock is taken")

// take takes the lock of a file, which it makes if there is none. The kernel gives the lock
// back when the file is closed, and so also when the process is killed. If the lock is
// taken, take returns the file, which the caller may read, and errTaken.
func take(root *os.Root, name string) (*os.File, error) {
	for {
		file, err := openRegular(root, name, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, err
		}
		switch err := flock(file); {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return file, errTaken
		case err != nil:
			return nil, errors.Join(&fs.PathError{Op: "flock", Path: root.Name() + "/" + name, Err: err}, file.Close())
		}
		// If a user removed the file meanwhile, another process may have the lock of
		// a new one.
		named, err := isNamed(root, name, file)
		if named && err == nil {
			return file, nil
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
}

// flock takes the lock of an open file, and does not wait for it.
func flock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
