package hostlocal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// lockPerm are the permissions with which the plugin makes its lock.
const lockPerm = 0o750

// lock takes the locks of a network folder: the folder itself, which plugins before version
// 0.7 lock, and then the file "lock", which later ones do. It waits for them for at most
// the given time, and then returns an error that wraps reaper.ErrAgain. The plugin holds
// them for a few milliseconds. It makes the file if there is none, as the plugin does, and
// nothing ever removes it: two of that name would be two locks.
func (d *folder) lock(ctx context.Context, wait time.Duration) (unlock func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errLocked)
	defer cancel()
	own, err := d.open(".") // a descriptor of its own, so that unlock gives it back
	if err != nil {
		return nil, err
	}
	if err := flock(ctx, own.f); err != nil {
		own.Close()
		return nil, d.at("lock", "", err)
	}
	fd, err := retried(func() (int, error) {
		return unix.Openat(d.fd(), lockFile, unix.O_CREAT|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, lockPerm)
	})
	if err != nil {
		own.Close()
		return nil, d.at("open", lockFile, err)
	}
	f := os.NewFile(uintptr(fd), d.path+"/"+lockFile)
	if err := flock(ctx, f); err != nil {
		f.Close()
		own.Close()
		return nil, d.at("lock", lockFile, err)
	}
	return func() {
		f.Close()
		own.Close()
	}, nil
}

var errLocked = fmt.Errorf("%w: another program holds the lock of the network", reaper.ErrAgain)

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
