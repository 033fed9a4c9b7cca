package hostlocal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

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
