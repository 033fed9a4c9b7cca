package backendtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// A storedRecord is the Stored of a record.
type storedRecord struct {
	IP      netip.Addr
	Owner   ipam.Owner
	Sandbox string
	Created time.Time
	Group   string
	Handle  bool // the record of an empty handle
}

// Record implements ipam.Backend.
func (b memory) Record(ctx context.Context, rs []ipam.Allocation) ([]json.RawMessage, error) {
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

// Restore implements ipam.Backend with a single request.
func (b memory) Restore(ctx context.Context, pool string, rs []ipam.Record, permit ipam.Permit) []error {
	request := "restore "
	if permit() != nil {
		request = "compare "
	}
	return b.each(ctx, request+pool, rs, func(r ipam.Record) error { return b.store.restore(pool, r, permit) })
}

// each answers for the records in one request.
func (b memory) each(ctx context.Context, request string, rs []ipam.Record, answer func(ipam.Record) error) []error {
	errs := make([]error, len(rs))
	err := b.store.request(ctx, request, func() error {
		for i, r := range rs {
			errs[i] = answer(r)
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

// compare decodes a record and returns nil if its place is free, or has a tombstone of the
// recorded entry, which it returns.
func (m *Memory) compare(pool string, r ipam.Record) (k storedRecord, tombstone *memoryEntry, err error) {
	if err := json.Unmarshal(r.Stored, &k); err != nil {
		return k, nil, fmt.Errorf("decode the record: %w", err)
	}
	if !k.Handle && k.IP.String() != r.IP {
		return k, nil, fmt.Errorf("the record is of %s, and its content of %s", r.IP, k.IP)
	}
	if k.Handle {
		if _, ok := m.handles[r.Key]; ok {
			return k, nil, ipam.ErrPresent
		}
		return k, nil, nil
	}
	switch i := slices.IndexFunc(m.entries, func(e *memoryEntry) bool { return e.pool == pool && e.key == r.Key }); {
	case i < 0:
		return k, nil, nil
	case m.entries[i].String() == k.entry(pool, r.Key).String():
		return k, nil, ipam.ErrPresent
	case m.entries[i].tombstone && m.entries[i].owner == k.Owner:
		return k, m.entries[i], nil
	default:
		return k, nil, fmt.Errorf("%w: it is now %+v", ipam.ErrTaken, m.entries[i].owner)
	}
}

// entry returns the entry of a record.
func (k storedRecord) entry(pool, key string) *memoryEntry {
	return &memoryEntry{pool: pool, key: key, ip: k.IP, owner: k.Owner, sandbox: k.Sandbox, created: k.Created, group: k.Group}
}

// restore puts back one record if its place is free.
func (m *Memory) restore(pool string, r ipam.Record, permit ipam.Permit) error {
	k, tombstone, err := m.compare(pool, r)
	if err == nil {
		err = permit()
	}
	switch {
	case err != nil:
		return err
	case k.Handle:
		m.version++
		m.handles[r.Key] = m.version
		return nil
	case tombstone != nil:
		tombstone.tombstone = false
		m.wrote(tombstone)
		return nil
	}
	if k.Group != "" {
		m.begin(k.Group)
	}
	back := k.entry(pool, r.Key)
	m.wrote(back)
	m.entries = append(m.entries, back)
	return nil
}
