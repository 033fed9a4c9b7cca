package hostlocal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/kube"
)

// A record is a lease as stored.
type record struct {
	Content []byte      `json:"content"`
	Mode    fs.FileMode `json:"mode"` // its permissions
	ModTime time.Time   `json:"mtime"`
}

// maxMode are the permissions that a record may have. Any other bit would make the file more
// than a lease.
const maxMode fs.FileMode = 0o777

// Record implements ipam.Backend.
func (b *Backend) Record(ctx context.Context, as []ipam.Allocation) ([]json.RawMessage, error) {
	records, all := make([]json.RawMessage, len(as)), make([]int, len(as))
	for i := range as {
		all[i] = i
	}
	for _, indices := range ipam.ByPool(all, func(i int) string { return as[i].Pool }) {
		d, err := b.openPool(as[indices[0]].Pool)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, i := range indices {
			if records[i], err = d.record(as[i]); err != nil {
				break
			}
		}
		d.close()
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// record returns the record of a lease; none if it is no longer as listed.
func (d *folder) record(a ipam.Allocation) (json.RawMessage, error) {
	if !addressOf(a.Key).IsValid() {
		return nil, nil
	}
	f, err := d.read(a.Key, maxLease)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ipam.ErrChanged):
		return nil, nil
	case err != nil:
		return nil, err
	case !f.mode.IsRegular() || f.token() != a.Token:
		return nil, nil
	}
	return json.Marshal(record{f.content, f.mode.Perm(), f.mtime})
}

// readRecord decodes a record into the file to put back. The error says what is wrong with a
// record that Record cannot have returned.
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
		return file{}, fmt.Errorf("it is not a lease: %w", err)
	}
	if r.IP != ip.String() {
		return file{}, fmt.Errorf("it is of %s, and its address is %q", ip, r.IP)
	}
	return f, nil
}

// compare says what is in the place of a file: nil if it is free, ipam.ErrPresent if the lease
// is there, and an error that wraps ipam.ErrTaken if another one is.
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
