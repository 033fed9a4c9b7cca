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

// A kept record is what Record returns of an entry.
type kept struct {
	IP      netip.Addr
	Owner   reaper.Owner
	Sandbox string
	Created time.Time
	Group   string
	Handle  bool // it is one without addresses
}

// Record implements reaper.Recorder.
func (b memory) Record(ctx context.Context, rs []reaper.Allocation) ([]json.RawMessage, error) {
	records := make([]json.RawMessage, len(rs))
	err := b.store.request(ctx, "record", func() (err error) {
		for i, r := range rs {
			k := kept{Sandbox: r.Key, Handle: r.Pool == emptyHandles}
			version, ok := b.store.handles[r.Key]
			if !k.Handle {
				var e *record
				if e = b.store.find(r); e != nil {
					k = kept{e.ip, e.owner, e.sandbox, e.created, e.group, false}
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

// Restore implements reaper.Recorder, in one request for all.
func (b memory) Restore(ctx context.Context, pool string, rs []reaper.Record) []error {
	errs := make([]error, len(rs))
	err := b.store.request(ctx, "restore "+pool, func() error {
		for i, r := range rs {
			errs[i] = b.store.putBack(pool, r)
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

// putBack adds an entry where its place is free.
func (m *Memory) putBack(pool string, r reaper.Record) error {
	var k kept
	if err := json.Unmarshal(r.Stored, &k); err != nil {
		return fmt.Errorf("decode the record: %w", err)
	}
	if !k.Handle && k.IP.String() != r.IP {
		return fmt.Errorf("the record is of %s, and has %s", r.IP, k.IP)
	}
	if k.Handle {
		if _, ok := m.handles[r.Key]; ok {
			return reaper.ErrPresent
		}
		m.version++
		m.handles[r.Key] = m.version
		return nil
	}
	back := &record{pool: pool, key: r.Key, ip: k.IP, owner: k.Owner, sandbox: k.Sandbox, created: k.Created, group: k.Group}
	switch i := slices.IndexFunc(m.records, func(e *record) bool { return e.pool == pool && e.key == r.Key }); {
	case i < 0:
	case m.records[i].String() == back.String():
		return reaper.ErrPresent
	case m.records[i].buried && m.records[i].owner == back.owner:
		m.records[i].buried = false
		m.wrote(m.records[i])
		return nil
	default:
		return fmt.Errorf("%w: it is now %+v", reaper.ErrTaken, m.records[i].owner)
	}
	if k.Group != "" {
		m.begin(k.Group)
	}
	m.wrote(back)
	m.records = append(m.records, back)
	return nil
}
