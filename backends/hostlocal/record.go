package hostlocal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A record is a lease as its folder has it.
type record struct {
	Content []byte      `json:"content"`
	Mode    fs.FileMode `json:"mode"` // its permissions
	ModTime time.Time   `json:"mtime"`
}

// maxMode are the permissions that a record may have. Another bit would make the file more
// than a lease.
const maxMode fs.FileMode = 0o777

// Record implements ipam.Backend.
func (b *Backend) Record(ctx context.Context, as []ipam.Allocation) ([]json.RawMessage, error) {
	records := make([]json.RawMessage, len(as))
	open := make(map[string]*folder) // nil for one that is gone
	defer func() {
		for _, d := range open {
			if d != nil {
				d.close()
			}
		}
	}()
	for i, a := range as {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, known := open[a.Pool]
		if !known {
			var err error
			if d, err = b.openPool(ctx, a.Pool); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			open[a.Pool] = d
		}
		if d == nil || !addressOf(a.Key).IsValid() {
			continue
		}
		f, err := d.read(a.Key, maxLease)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !f.mode.IsRegular() || f.token() != a.Token {
			continue
		}
		records[i], err = json.Marshal(record{f.content, f.mode.Perm(), f.mtime})
		if err != nil {
			return nil, err
		}
	}
	return records, nil
}

// readRecord decodes a record as the file that is to be put back. The error says what is
// wrong with a record that Record cannot have returned.
func readRecord(pool string, r ipam.Record) (file, error) {
	var stored record
	if err := kube.Decode(r.Stored, &stored); err != nil {
		return file{}, fmt.Errorf("decode the record: %w", err)
	}
	if r.Pool != pool {
		return file{}, fmt.Errorf("its pool is %q, and not %q", r.Pool, pool)
	}
	if stored.Mode&^maxMode != 0 || stored.ModTime.IsZero() {
		return file{}, fmt.Errorf("its mode is %v, and its time %v", stored.Mode, stored.ModTime)
	}
	f := file{name: r.Key, mode: stored.Mode, size: int64(len(stored.Content)), mtime: stored.ModTime, content: stored.Content}
	ip, _, err := f.lease()
	if err != nil {
		return file{}, fmt.Errorf("it is no lease: %w", err)
	}
	if r.IP != ip.String() {
		return file{}, fmt.Errorf("it is of %s, and its address is %q", ip, r.IP)
	}
	return f, nil
}

// compare says what is in the place of a file: nil if it is free, ipam.ErrPresent if the
// lease is there, and ipam.ErrTaken if another one is.
func (d *folder) compare(f file) error {
	there, err := d.read(f.name, maxLease)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case there.mode.IsRegular() && bytes.Equal(there.content, f.content) && there.size == f.size:
		return ipam.ErrPresent
	}
	return fmt.Errorf("%w: %s", ipam.ErrTaken, there.owner())
}
