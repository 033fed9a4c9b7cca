package hostlocal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// The permissions of the lock. Here it is made with lockPerm. The plugin makes it with 0750, so
// it has pluginPerm under any usual umask.
const (
	lockPerm   = 0o600
	pluginPerm = 0o100
)

// lock takes the lock of a network folder: the file "lock", which plugins since version 0.7
// lock. It makes the file if there is none, and nothing ever removes it: two of that name would
// be two locks. Plugins before 0.7 make no such file and lock the folder itself. So lock takes
// the folder too as long as no plugin made the file. It never does elsewhere: the file is
// root's alone, but any user may open the folder, and hold up every release by a lock of it.
//
// It waits for at most the given time, and then returns an error that wraps ipam.ErrAgain.
// The plugin holds its lock for a few milliseconds.
func (d *folder) lock(ctx context.Context, wait time.Duration) (unlock func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errLocked)
	defer cancel()
	fd, err := retried(func() (int, error) {
		return unix.Openat(d.fd(), lockFile, unix.O_CREAT|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, lockPerm)
	})
	if err != nil {
		return nil, d.at("open", lockFile, err)
	}
	f := os.NewFile(uintptr(fd), d.path+"/"+lockFile)
	unlock = func() { _ = f.Close() }
	info, err := f.Stat()
	if err == nil && info.Mode()&pluginPerm == 0 {
		var own *folder // a descriptor of its own, so that unlock gives it back
		if own, err = d.open("."); err == nil {
			unlock = func() { _ = f.Close(); own.close() }
			err = flock(ctx, own.f)
		}
	}
	if err == nil {
		err = flock(ctx, f)
	}
	if err != nil {
		unlock()
		return nil, d.at("lock", lockFile, err)
	}
	return unlock, nil
}

var errLocked = fmt.Errorf("%w: another program holds the lock of the network", ipam.ErrAgain)

// flock takes the lock of an open file. It asks again and again: a thread that waits in
// flock(2) cannot be called off.
func flock(ctx context.Context, f *os.File) error {
	const pause = 2 * time.Millisecond
	for {
		_, err := retried(func() (int, error) { return 0, unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
