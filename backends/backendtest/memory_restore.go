package backendtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// A storedRecord is the Stored of a record.
type storedRecord struct {
	IP      netip.Addr
	Owner   reaper.Owner
	Sandbox string
	Created time.Time
	Group   string
	Handle  bool // the record of an empty handle
}

// Record implements reaper.Recorder.
func (b memory) Record(ctx context.Context, rs []reaper.Allocation) ([]json.RawMessage, error) {
	records := make([]json.RawMessage, len(rs))
	err := b.store.request(ctx, "record", func() (err error) {
		for i, r := range rs {
			k := storedRecord{Sandbox: r.Key, Handle: r.Pool == emptyHandles}
			version, ok := b.store.handles[r.Key]
			if !k.Handle {
				var e *memoryEntry
				if e = b.store.find(r); e != nil {
					k = storedRecord{e.ip, e.owner, e.sandbox, e.created, e.group, false}
					version = e.version
				}
				ok = e != nil
			}
			if ok && strconv.Itoa(version) == r.Token {
				if records[i], err = json.Marshal(k); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return records, err
}

// Restore implements reaper.Recorder with one request for all records.
func (b memory) Restore(ctx context.Context, pool string, rs []reaper.Record) []error {
	errs := make([]error, len(rs))
	err := b.store.request(ctx, "restore "+pool, func() error {
		for i, r := range rs {
			errs[i] = b.store.restore(pool, r)
		}
		return nil
	})
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

// restore puts back one record if its place is free.
func (m *Memory) restore(pool string, r reaper.Record) error {
	var k storedRecord
	if err := json.Unmarshal(r.Stored, &k); err != nil {
		return fmt.Errorf("decode the record: %w", err)
	}
	if !k.Handle && k.IP.String() != r.IP {
		return fmt.Errorf("the record is of %s, and its content of %s", r.IP, k.IP)
	}
	if k.Handle {
		if _, ok := m.handles[r.Key]; ok {
			return reaper.ErrPresent
		}
		m.version++
		m.handles[r.Key] = m.version
		return nil
	}
	back := &memoryEntry{pool: pool, key: r.Key, ip: k.IP, owner: k.Owner, sandbox: k.Sandbox, created: k.Created, group: k.Group}
	switch i := slices.IndexFunc(m.entries, func(e *memoryEntry) bool { return e.pool == pool && e.key == r.Key }); {
	case i < 0:
	case m.entries[i].String() == back.String():
		return reaper.ErrPresent
	case m.entries[i].tombstone && m.entries[i].owner == back.owner:
		m.entries[i].tombstone = false
		m.wrote(m.entries[i])
		return nil
	default:
		return fmt.Errorf("%w: it is now %+v", reaper.ErrTaken, m.entries[i].owner)
	}
	if k.Group != "" {
		m.begin(k.Group)
	}
	m.wrote(back)
	m.entries = append(m.entries, back)
	return nil
}
