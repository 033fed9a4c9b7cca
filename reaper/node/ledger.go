package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
)

const (
	ledgerName = "ledger"
	ledgerNew  = "ledger.new" // becomes the ledger once it is complete

	maxLedger = 8160 << 10 // the largest size of the file, in bytes
)

// A writer holds the lock of the folder for as long as it takes to write 8 MiB to a slow disk.
const (
	lockRetry   = 20 * time.Millisecond
	lockRetries = 500
)

// Ledgers keeps the ledger in one file, as ledger.Ledger.Encode writes it. It implements
// ledger.Store. It is not safe for concurrent use, but other processes may use the same file.
type Ledgers struct {
	folder *Folder
	have   version // as loaded or saved
}

// A version is the hash of a file's content; zero if there is no file.
type version [sha256.Size]byte

// Ledgers returns the ledger of the folder.
func (f *Folder) Ledgers() *Ledgers { return &Ledgers{folder: f} }

// path returns the path of the file, for messages.
func (l *Ledgers) path() string { return l.folder.at(ledgerName) }

// Capacity implements ledger.Store.
func (*Ledgers) Capacity() int { return maxLedger }

// Load implements ledger.Store. It writes nothing. A damaged file is not decoded at all,
// because one checksum covers all of it; the next Save replaces it.
func (l *Ledgers) Load(ctx context.Context) (ledger.Ledger, error) {
	l.have = version{}
	if err := ctx.Err(); err != nil {
		return ledger.Ledger{}, err
	}
	root, err := l.folder.open(existing)
	if err != nil {
		return ledger.Ledger{}, unlessAbsent(err)
	}
	defer func() { _ = root.Close() }()
	data, have, err := readLedger(root)
	if err != nil {
		return ledger.Ledger{}, fmt.Errorf("%s: %w", l.path(), err)
	}
	if have == (version{}) {
		return ledger.Ledger{}, nil
	}
	if len(data) > maxLedger {
		l.have = have
		return ledger.Ledger{}, fmt.Errorf("%s: %w: at most %d bytes are read, and it has more", l.path(), ledger.ErrDamaged, maxLedger)
	}
	memory, err := ledger.Decode(data)
	if err == nil || errors.Is(err, ledger.ErrDamaged) { // a newer version's file stays
		l.have = have
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", l.path(), err)
	}
	return memory, err
}

// Changed implements ledger.Store. It compares the content of the file.
func (l *Ledgers) Changed(ctx context.Context) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	var there version
	root, err := l.folder.open(existing)
	if err == nil {
		_, there, err = readLedger(root)
		_ = root.Close()
	}
	if err = unlessAbsent(err); err == nil && there == (version{}) && l.have != there {
		err = errors.New("it is gone")
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", l.path(), err)
	}
	return there != l.have, nil
}

// readLedger returns as much of the file as is read, and its version. Without a file, it
// returns nothing.
func readLedger(root *os.Root) ([]byte, version, error) {
	file, err := openRegular(root, ledgerName, os.O_RDONLY)
	if err != nil {
		return nil, version{}, unlessAbsent(err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxLedger+1))
	return data, sha256.Sum256(data), err
}

// Save implements ledger.Store. It makes the folder if there is none. When it returns nil, the
// ledger is on disk. A reader, even after a crash, finds either the ledger from before Save or
// the one from after it.
func (l *Ledgers) Save(ctx context.Context, memory ledger.Ledger) error {
	data := memory.Encode()
	if len(data) > maxLedger {
		return fmt.Errorf("%s would have %d bytes, at most %d are read", l.path(), len(data), maxLedger)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	root, err := l.folder.open(made)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	lock, err := l.lock(ctx, root)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	switch _, there, err := readLedger(root); {
	case err != nil:
		return fmt.Errorf("%s: %w", l.path(), err)
	case there != l.have:
		return fmt.Errorf("another process wrote %s meanwhile: %w", l.path(), ipam.ErrAgain)
	}
	if err := replace(root, data); err != nil {
		return l.folder.unusable(fmt.Errorf("write %s: %w", l.path(), err))
	}
	l.have = sha256.Sum256(data)
	return nil
}

// lock waits for the lock of the folder, which every writer of the ledger takes, and takes it.
// If another process keeps it, the error wraps ipam.ErrAgain.
func (l *Ledgers) lock(ctx context.Context, root *os.Root) (*os.File, error) {
	folder, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	backoff := retry.WithMaxRetries(lockRetries, retry.NewConstant(lockRetry))
	err = retry.Do(ctx, backoff, func(context.Context) error {
		err := flock(folder)
		if errors.Is(err, errTaken) {
			return retry.RetryableError(err)
		}
		return err
	})
	if errors.Is(err, errTaken) {
		err = fmt.Errorf("another process is writing the ledger: %w: %w", err, ipam.ErrAgain)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", l.folder.path, err), folder.Close())
	}
	return folder, nil
}

// replace writes the content to a new file, and renames it to the ledger once it is on disk.
// The caller holds the lock. A killed process may have left the new file behind.
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
	err = errors.Join(err, file.Close())
	if err == nil {
		err = root.Rename(ledgerNew, ledgerName)
	}
	if err != nil {
		return errors.Join(err, remove(root, ledgerNew))
	}
	return syncFolder(root)
}
