package nodestate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/ip-reaper/ip-reaper/reaper"
)

const (
	ledgerName = "ledger"
	maxLedger  = 8160 << 10 // the largest size of the file, in bytes
)

// Ledgers keeps the ledger in one file, as reaper.Ledger.Encode writes it. It implements
// reaper.Ledgers. Its methods are for one goroutine; other processes may use the same file.
type Ledgers struct {
	folder *Folder
	have   version // as loaded or saved
}

// A version tells two contents of the ledger's file apart. The zero version is that of no
// file.
type version struct {
	exists bool
	size   int64
	sum    [sha256.Size]byte // zero for a file that is too large
}

// Ledgers returns the ledger of the folder.
func (f *Folder) Ledgers() *Ledgers { return &Ledgers{folder: f} }

// Capacity implements reaper.Ledgers.
func (*Ledgers) Capacity() int { return maxLedger }

// Load implements reaper.Ledgers. It writes nothing. Of a damaged file, nothing is decoded,
// because one checksum is over all of it. The next Save keeps that file under another name.
func (l *Ledgers) Load(ctx context.Context) (reaper.Ledger, error) {
	l.have = version{}
	if err := ctx.Err(); err != nil {
		return reaper.Ledger{}, err
	}
	root, err := l.folder.open()
	if errors.Is(err, fs.ErrNotExist) {
		return reaper.Ledger{}, nil
	}
	if err != nil {
		return reaper.Ledger{}, err
	}
	defer func() { _ = root.Close() }()
	ledger, have, err := l.read(root)
	if err == nil || errors.Is(err, reaper.ErrLedgerDamaged) {
		l.have = have
	}
	return ledger, err
}

// read returns the ledger in the file, and the version of the file. The error wraps
// reaper.ErrLedgerDamaged if the file could be read, and is no ledger.
func (l *Ledgers) read(root *os.Root) (reaper.Ledger, version, error) {
	data, have, err := readLedger(root)
	switch {
	case err != nil:
		return reaper.Ledger{}, version{}, fmt.Errorf("%s: %w", l.folder.at(ledgerName), err)
	case !have.exists:
		return reaper.Ledger{}, have, nil
	case have.size > maxLedger:
		return reaper.Ledger{}, have, l.damaged(fmt.Errorf("%w: it has %d bytes, at most %d are read", reaper.ErrLedgerDamaged, have.size, maxLedger))
	}
	ledger, err := reaper.DecodeLedger(data)
	switch {
	case errors.Is(err, reaper.ErrLedgerNewer):
		return reaper.Ledger{}, version{}, fmt.Errorf("%s: %w", l.folder.at(ledgerName), err)
	case err != nil:
		return reaper.Ledger{}, have, l.damaged(err)
	}
	return ledger, have, nil
}

// damaged returns an error that names the file, and the one that will have its content.
func (l *Ledgers) damaged(err error) error {
	return fmt.Errorf("%s: %w (the next run that saves a ledger keeps this one as %s)", l.folder.at(ledgerName), err, ledgerDamaged)
}

// readLedger returns the content of the file, and its version. It does not read a file that
// is too large.
func readLedger(root *os.Root) (data []byte, have version, err error) {
	file, err := openRegular(root, ledgerName, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, version{}, nil
	}
	if err != nil {
		return nil, version{}, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, version{}, err
	}
	if info.Size() > maxLedger {
		return nil, version{exists: true, size: info.Size()}, nil
	}
	data, err = io.ReadAll(io.LimitReader(file, maxLedger))
	return data, versionOf(data), err
}

// versionOf returns the version of a file with that content.
func versionOf(data []byte) version {
	return version{exists: true, size: int64(len(data)), sum: sha256.Sum256(data)}
}
