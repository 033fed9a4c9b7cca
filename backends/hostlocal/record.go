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
	records := make([]json.RawMessage, len(as))
	all := make([]int, len(as))
	for i := range all {
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
	f, err := d.asListed(a)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ipam.ErrChanged):
		return nil, nil
	case err != nil:
		return nil, err
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
	f := file{
		name:    r.Key,
		mode:    stored.Mode,
		size:    int64(len(stored.Content)),
		mtime:   stored.ModTime,
		content: stored.Content,
	}
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

// restoreWait is how long a restore waits for the lock of a network.
const restoreWait = 5 * time.Second

// A restoration is one call of Restore.
type restoration struct {
	d      *folder
	files  []file
	errs   []error
	groups [][]int // the indices of records that can be decoded, by attachment
}

// Restore implements ipam.Backend. It puts back all leases of an attachment or none.
func (b *Backend) Restore(ctx context.Context, pool string, rs []ipam.Record, permit ipam.Permit) []error {
	r := &restoration{files: make([]file, len(rs)), errs: make([]error, len(rs))}
	r.decode(pool, rs)
	d, err := b.openPool(pool)
	switch {
	case ctx.Err() != nil:
		r.answerRest(ctx.Err())
	case errors.Is(err, fs.ErrNotExist):
		r.answerRest(fmt.Errorf("%w: its folder is gone", ipam.ErrTaken))
	case err != nil:
		r.answerRest(err)
	default:
		r.d = d
		defer d.close()
		r.putAll(ctx, permit)
	}
	return r.errs
}

// putAll puts back what the permit allows. What it refuses, putAll compares without the lock, whose file it
// might have to create.
func (r *restoration) putAll(ctx context.Context, permit ipam.Permit) {
	if refused := permit(); refused != nil {
		for _, group := range r.groups {
			answerAll(r.errs, r.free(group), refused)
		}
		return
	}
	unlock, err := r.d.lock(ctx, restoreWait)
	if err != nil {
		r.answerRest(err)
		return
	}
	defer unlock()
	for _, group := range r.groups {
		if err := ctx.Err(); err != nil {
			answerAll(r.errs, group, err)
			continue
		}
		free := r.free(group)
		if refused := permit(); refused != nil {
			answerAll(r.errs, free, refused)
			continue
		}
		r.put(free)
	}
	if err := r.d.sync(); err != nil {
		r.answerRest(err)
	}
}

// decode decodes the records, and groups them by attachment. If two records have the same
// address, the second is refused.
func (r *restoration) decode(pool string, rs []ipam.Record) {
	names := make(map[string]bool)
	owners := make([]string, len(rs))
	var valid []int
	for i, one := range rs {
		f, err := readRecord(pool, one)
		if err == nil && names[f.name] {
			err = fmt.Errorf("%w: another record goes there first", ipam.ErrTaken)
		}
		r.files[i] = f
		r.errs[i] = err
		if err != nil {
			continue
		}
		names[f.name] = true
		_, of, _ := f.lease()
		owners[i] = cmp.Or(of.String(), f.name) // an empty file has no siblings
		valid = append(valid, i)
	}
	r.groups = ipam.ByPool(valid, func(i int) string { return owners[i] })
}

// answerRest sets the answer for each record that has none.
func (r *restoration) answerRest(err error) {
	for i := range r.errs {
		if r.errs[i] == nil {
			r.errs[i] = err
		}
	}
}

// free compares the records of one attachment with the folder, and returns those whose
// places are free. If the place of one is taken, it returns none.
func (r *restoration) free(group []int) []int {
	var free []int
	var kept error
	for _, i := range group {
		r.errs[i] = r.d.compare(r.files[i])
		switch err := r.errs[i]; {
		case err == nil:
			free = append(free, i)
		case !errors.Is(err, ipam.ErrPresent):
			kept = fmt.Errorf("its sibling %s cannot be put back: %w", r.files[i].name, err)
		}
	}
	if kept != nil {
		answerAll(r.errs, free, kept)
		return nil
	}
	return free
}

// put puts the records of one attachment back. If one fails, it removes those it already put
// back, which nothing can have changed under the lock.
func (r *restoration) put(free []int) {
	for n, i := range free {
		err := r.d.create(r.files[i])
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%w: %w", ipam.ErrTaken, err)
		}
		if err == nil {
			continue
		}
		r.errs[i] = err
		for _, before := range free[:n] {
			if undo := r.d.remove(r.files[before].name); undo == nil {
				r.errs[before] = fmt.Errorf("its sibling %s cannot be put back: %w", r.files[i].name, err)
			}
		}
		answerAll(r.errs, free[n+1:], err)
		return
	}
}
