package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/ip-reaper/ip-reaper/reaper"
)

const (
	lockName = "lock"
	maxLock  = 4 << 10 // bytes of the content that are read
)

// Lock is a file whose lock a run holds until it ends. It implements reaper.Lock, and is safe
// for concurrent use. The kernel releases the lock when the process ends, so that a killed run
// does not block others. The content of the file is a line that names the holder. It is for
// messages: a file whose lock is not taken is free, no matter what it says.
type Lock struct{ folder *Folder }

// Lock returns the lock of the folder.
func (f *Folder) Lock() *Lock { return &Lock{f} }

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
	file, err := openRegular(root, lockName, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, l.folder.badPlace(fmt.Errorf("%s: %w", l.folder.at(lockName), err))
	}
	if err := flock(file); err != nil {
		defer func() { _ = file.Close() }()
		if errors.Is(err, errTaken) {
			return nil, l.lockedBy(file)
		}
		return nil, fmt.Errorf("%s: %w", l.folder.at(lockName), err)
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
