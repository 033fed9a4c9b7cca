package hostlocal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A folder is an open folder. It takes bare file names and follows no symbolic link, so no name
// leads out of it. A folder is safe for concurrent use.
type folder struct {
	*os.Root
	path string
}

// openFolder opens a folder by its path, following symbolic links.
func openFolder(path string) (*folder, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &folder{root, path}, nil
}

// open opens a folder in the folder.
func (d *folder) open(name string) (*folder, error) {
	named, err := d.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !named.IsDir() {
		return nil, fmt.Errorf("it is %s, not a folder, and is not followed", kindOf(named.Mode()))
	}
	root, err := d.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(named, opened) {
		err = errReplaced
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &folder{root, d.path + "/" + name}, nil
}

// errReplaced says that a file was replaced while it was being opened.
var errReplaced = fmt.Errorf("%w: it was replaced while it was opened", ipam.ErrChanged)

// close closes the folder. A folder was only read, so nothing can be lost.
func (d *folder) close() { _ = d.Close() }

// each calls do with the name of each entry, until do returns an error. It holds few names at a
// time. It does not look at the entries themselves: a damaged one would hide the others.
func (d *folder) each(ctx context.Context, do func(name string) error) error {
	const chunk = 1024
	f, err := d.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		names, err := f.Readdirnames(chunk)
		for _, name := range names {
			if err := do(name); err != nil {
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

// A file is one entry of a folder.
type file struct {
	name    string
	mode    fs.FileMode // its type and its permissions
	inode   uint64      // 0 if unknown
	size    int64
	mtime   time.Time
	content []byte // of a regular file, as much as was read
}

// read returns the named entry, with at most limit bytes of its content. It opens no device and
// waits for no pipe.
func (d *folder) read(name string, limit int) (file, error) {
	named, err := d.Lstat(name)
	if err != nil || !named.Mode().IsRegular() {
		return fileOf(name, named), err
	}
	f, err := d.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return file{}, err
	}
	defer func() { _ = f.Close() }()
	opened, err := f.Stat()
	if err == nil && !os.SameFile(named, opened) {
		err = errReplaced
	}
	if err != nil {
		return file{}, err
	}
	found := fileOf(name, opened)
	found.content, err = io.ReadAll(io.LimitReader(f, int64(limit)))
	return found, err
}

// fileOf converts what the system says about an entry; the zero file for nil.
func fileOf(name string, info fs.FileInfo) file {
	if info == nil {
		return file{}
	}
	f := file{name: name, mode: info.Mode(), size: info.Size(), mtime: info.ModTime().UTC()}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		f.inode = stat.Ino
	}
	return f
}

// kindOf names the type of an entry that is not a regular file.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// remove removes a file, if it exists.
func (d *folder) remove(name string) error {
	if err := d.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sync makes the entries of the folder survive a crash of the node.
func (d *folder) sync() error {
	f, err := d.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// The permissions of the lock. This program makes it with lockPerm, the plugin with 0750, so it
// then has pluginPerm under any usual umask.
const (
	lockPerm   = 0o600
	pluginPerm = 0o100
)

// lock takes the lock of a network folder: the file "lock", which plugins since version 0.7
// lock. It makes the file if there is none, and nothing ever removes it: a second file of that
// name would be a second lock. Plugins before 0.7 make no such file and lock the folder itself.
// So lock also locks the folder as long as no plugin made the file. Otherwise it does not: only
// root can open the file, but any user may open the folder, and hold up every release by
// locking it.
//
// It waits at most the given time, and then returns an error that wraps ipam.ErrAgain. The
// plugin holds its lock for a few milliseconds.
func (d *folder) lock(ctx context.Context, wait time.Duration) (unlock func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errLocked)
	defer cancel()
	var open []*os.File
	unlock = func() {
		for _, f := range open {
			_ = f.Close()
		}
	}
	take := func(name string, flags int) (*os.File, error) {
		f, err := d.OpenFile(name, flags|os.O_RDONLY|syscall.O_NONBLOCK, lockPerm)
		if err == nil {
			open = append(open, f)
		}
		return f, err
	}
	f, err := take(lockFile, os.O_CREATE|os.O_EXCL) // which follows no symbolic link
	if errors.Is(err, fs.ErrExist) {
		f, err = take(lockFile, 0)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if named, wrong := d.Lstat(lockFile); err == nil && !os.SameFile(info, named) {
		err = cmp.Or(wrong, errReplaced)
	}
	if err == nil && info.Mode()&pluginPerm == 0 {
		var dir *os.File
		if dir, err = take(".", 0); err == nil {
			err = flock(ctx, dir)
		}
	}
	if err == nil {
		err = flock(ctx, f)
	}
	if err != nil {
		unlock()
		return nil, fmt.Errorf("lock %s/%s: %w", d.path, lockFile, err)
	}
	return unlock, nil
}

var errLocked = fmt.Errorf("%w: another program holds the lock of the network", ipam.ErrAgain)

// flock takes the lock of an open file. It polls: a thread that waits in flock(2) cannot be
// called off.
func flock(ctx context.Context, f *os.File) error {
	const pause = 2 * time.Millisecond
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
