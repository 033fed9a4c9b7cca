package nodestate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/ip-reaper/ip-reaper/reaper"
)

const (
	ledgerNew     = "ledger.new"     // becomes the ledger when it is whole
	ledgerDamaged = "ledger.damaged" // the last ledger that could not be decoded
	ledgerLock    = "ledger.lock"    // whose lock a writer has
)

// A writer has the lock for as long as it takes to write 8 MiB to a slow disk.
const (
	lockRetry   = 20 * time.Millisecond
	lockRetries = 500
)

// Save implements reaper.Ledgers. It makes the folder if there is none. When it returns nil,
// the ledger is on the disk. A reader, also after a crash, finds the ledger before or the
// ledger after Save, and nothing else.
func (l *Ledgers) Save(ctx context.Context, ledger reaper.Ledger) error {
	data := ledger.Encode()
	if len(data) > maxLedger {
		return fmt.Errorf("%s would have %d bytes, at most %d are read", l.folder.at(ledgerName), len(data), maxLedger)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	root, err := l.folder.openOrMake()
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	lock, err := l.lock(ctx, root)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	_, there, damage := l.read(root)
	switch {
	case damage != nil && !errors.Is(damage, reaper.ErrLedgerDamaged):
		return damage
	case there != l.have:
		return fmt.Errorf("another process wrote %s meanwhile: %w", l.folder.at(ledgerName), reaper.ErrAgain)
	}
	if damage != nil {
		if err := keepDamaged(root); err != nil {
			return fmt.Errorf("%s could not be kept as %s: %w", l.folder.at(ledgerName), ledgerDamaged, err)
		}
	}
	if err := replace(root, data); err != nil {
		return fmt.Errorf("write %s: %w", l.folder.at(ledgerName), err)
	}
	l.have = versionOf(data)
	return nil
}

// lock waits for the lock of the writers, and takes it. If another process keeps it, the
// error wraps reaper.ErrAgain.
func (l *Ledgers) lock(ctx context.Context, root *os.Root) (lock *os.File, err error) {
	backoff := retry.WithMaxRetries(lockRetries, retry.NewConstant(lockRetry))
	err = retry.Do(ctx, backoff, func(context.Context) error {
		lock, err = take(root, ledgerLock)
		if errors.Is(err, errTaken) {
			return errors.Join(lock.Close(), retry.RetryableError(err))
		}
		return err
	})
	switch {
	case errors.Is(err, errTaken):
		return nil, fmt.Errorf("another process is writing the ledger: %s: %w: %w", l.folder.at(ledgerLock), err, reaper.ErrAgain)
	case err != nil:
		return nil, badPlace(fmt.Errorf("%s: %w", l.folder.at(ledgerLock), err), l.folder.path)
	}
	return lock, nil
}

// keepDamaged gives the ledger's file a second name, so that its content outlasts replace.
func keepDamaged(root *os.Root) error {
	if err := remove(root, ledgerDamaged); err != nil {
		return err
	}
	return root.Link(ledgerName, ledgerDamaged)
}

// replace writes the content to a new file, and gives that the name of the ledger when it
// is on the disk. The caller has the lock. A process that was killed may have left the new
// file.
func replace(root *os.Root, data []byte) error {
	if err := remove(root, ledgerNew); err != nil {
		return err
	}
	file, err := root.OpenFile(ledgerNew, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, remove(root, ledgerNew))
	}
	if err := root.Rename(ledgerNew, ledgerName); err != nil {
		return errors.Join(err, remove(root, ledgerNew))
	}
	return syncFolder(root)
}

// remove removes a file, if there is one of that name.
func remove(root *os.Root, name string) error {
	if err := root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
