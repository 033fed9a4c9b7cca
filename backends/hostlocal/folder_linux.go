package hostlocal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A folder is an open folder. It names its files by their names alone and follows no
// symbolic link, so no name leads out of it. A folder is safe for concurrent use, but for
// each.
type folder struct {
	f    *os.File
	path string
}

// openFolder opens a folder by its path, in which symbolic links are followed.
func openFolder(path string) (*folder, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return &folder{f, path}, nil
}

// open opens a folder in the folder.
func (d *folder) open(name string) (*folder, error) {
	path := d.path + "/" + name
	fd, err := retried(func() (int, error) {
		return unix.Openat(d.fd(), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &folder{os.NewFile(uintptr(fd), path), path}, nil
}

// Close implements io.Closer. It also gives back the folder's own lock.
func (d *folder) Close() error { return d.f.Close() }

func (d *folder) fd() int { return int(d.f.Fd()) }

// at returns an error of the file of that name.
func (d *folder) at(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: d.path + "/" + name, Err: err}
}

// each calls do with the name and the type of each entry, until do returns an error. It
// holds few of them at a time.
func (d *folder) each(ctx context.Context, do func(name string, mode fs.FileMode) error) error {
	const chunk = 1024
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := d.f.ReadDir(chunk)
		for _, e := range entries {
			if err := do(e.Name(), e.Type()); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// stat returns the entry of that name, without its content.
func (d *folder) stat(name string) (file, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return file{}, d.at("stat", name, err)
	}
	return fileOf(name, &st), nil
}

// read returns the entry of that name, with at most limit bytes of its content. It opens
// no device and waits for no pipe.
func (d *folder) read(name string, limit int) (file, error) {
	found, err := d.stat(name)
	if err != nil || !found.mode.IsRegular() {
		return found, err
	}
	fd, err := retried(func() (int, error) {
		return unix.Openat(d.fd(), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return file{}, d.at("open", name, err)
	}
	return d.readOpen(fd, name, limit)
}

// readLinked is read for a name that may be of a symbolic link, which is followed.
func (d *folder) readLinked(name string, limit int) (file, error) {
	fd, err := retried(func() (int, error) {
		return unix.Openat(d.fd(), name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return file{}, d.at("open", name, err)
	}
	return d.readOpen(fd, name, limit)
}

// readOpen reads an open file, and closes it.
func (d *folder) readOpen(fd int, name string, limit int) (file, error) {
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return file{}, d.at("stat", name, err)
	}
	found := fileOf(name, &st)
	if !found.mode.IsRegular() {
		return found, nil
	}
	content := make([]byte, min(int(st.Size), limit)+1)
	size := 0
	for size < len(content) {
		n, err := retried(func() (int, error) { return unix.Read(fd, content[size:]) })
		if err != nil {
			return file{}, d.at("read", name, err)
		}
		if n == 0 {
			break
		}
		size += n
	}
	found.size = max(found.size, int64(size)) // it may have grown since
	found.content = content[:min(size, limit)]
	return found, nil
}

// fileOf returns an entry by what Linux says of it.
func fileOf(name string, st *unix.Stat_t) file {
	mode := fs.FileMode(st.Mode & 0o777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	default:
		mode |= fs.ModeDevice
	}
	return file{name: name, mode: mode, inode: st.Ino, size: st.Size, mtime: time.Unix(st.Mtim.Unix()).UTC()}
}

// remove removes a file. It reports no error if there is none.
func (d *folder) remove(name string) error {
	if err := unix.Unlinkat(d.fd(), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return d.at("remove", name, err)
	}
	return nil
}

// create makes a file with its content, permissions and time of modification, all at once.
// It fails with fs.ErrExist if the name is taken. Until the file is whole it has no name:
// the plugin reads every file of the folder, and a crash leaves nothing.
func (d *folder) create(f file) error {
	perm := f.mode.Perm()
	fd, err := retried(func() (int, error) {
		return unix.Openat(d.fd(), ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, uint32(perm))
	})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) {
		return fmt.Errorf("the file system of %s cannot make a file without a name (O_TMPFILE): %w", d.path, err)
	}
	if err != nil {
		return d.at("create", f.name, err)
	}
	made := os.NewFile(uintptr(fd), d.path+"/"+f.name)
	defer made.Close()
	if _, err := made.Write(f.content); err != nil {
		return err
	}
	if err := made.Chmod(perm); err != nil { // umask
		return err
	}
	self := "/proc/self/fd/" + strconv.Itoa(fd)
	at := unix.NsecToTimespec(f.mtime.UnixNano())
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, self, []unix.Timespec{at, at}, 0); err != nil {
		return d.at("set the time of", f.name, err)
	}
	if err := made.Sync(); err != nil {
		return err
	}
	if err := unix.Linkat(unix.AT_FDCWD, self, d.fd(), f.name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return d.at("create", f.name, err)
	}
	return nil
}

// sync makes the entries of the folder survive a crash of the node.
func (d *folder) sync() error { return d.f.Sync() }

// retried calls a system call again if a signal interrupted it.
func retried(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
