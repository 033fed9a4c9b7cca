package node

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

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
func remove(root *os.Root, name string) error {
	if err := root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
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
