package nodestate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

const (
	lockName = "lock"
	maxLock  = 4 << 10 // bytes of the content that are read
)

// Lock is a file whose lock a run holds until it ends. It implements reaper.Lock, and is
// safe for concurrent use. The kernel gives the lock back when the process ends, so that a
// run that was killed hinders no other one. The content of the file names the holder. It is
// for messages: a file whose lock is not taken is free, no matter what it says.
type Lock struct {
	folder *Folder
	now    func() time.Time
}

// Lock returns the lock of the folder.
func (f *Folder) Lock(now func() time.Time) *Lock { return &Lock{f, now} }

// A tenure is the content of the file: who has the lock, and since when.
type tenure struct {
	Holder string    `json:"holder"`
	Since  time.Time `json:"since"`
}

// Acquire implements reaper.Lock. It makes the folder if there is none. A second call of
// release does nothing.
func (l *Lock) Acquire(ctx context.Context, holder string) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	root, err := l.folder.openOrMake()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := take(root, lockName)
	switch {
	case errors.Is(err, errTaken):
		defer file.Close()
		return nil, l.lockedBy(file)
	case err != nil:
		return nil, badPlace(fmt.Errorf("%s: %w", l.folder.at(lockName), err), l.folder.path)
	}
	// On a full disk, the lock is held without the name of its holder.
	_ = write(file, tenure{holder, l.now().UTC()})
	return sync.OnceFunc(func() {
		_ = file.Truncate(0)
		_ = file.Close()
	}), nil
}

// write replaces the content of the file.
func write(file *os.File, t tenure) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err = file.WriteAt(append(data, '\n'), 0)
	return err
}

// lockedBy returns the error that names the holder. If the file does not name one, the run
// that has the lock has just begun or ended.
func (l *Lock) lockedBy(file *os.File) error {
	var t tenure
	data, err := io.ReadAll(io.NewSectionReader(file, 0, maxLock))
	if err == nil && json.Unmarshal(data, &t) != nil {
		t = tenure{}
	}
	if info, err := file.Stat(); err == nil && t.Since.IsZero() {
		t.Since = info.ModTime()
	}
	return &reaper.LockedError{Holder: cmp.Or(t.Holder, "another run"), Since: t.Since, Lock: "file " + l.folder.at(lockName)}
}
