package backendtest

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ip-reaper/ip-reaper/reaper"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
	"github.com/ip-reaper/ip-reaper/reaper/journal"
	"github.com/ip-reaper/ip-reaper/reaper/ledger"
	"github.com/ip-reaper/ip-reaper/reaper/report"
)

// record returns the backend's records of the entries.
func (s *fixture) record(entries ...entry) []ipam.Record {
	s.Helper()
	listed := s.list()
	rs := make([]ipam.Allocation, len(entries))
	for i, e := range entries {
		rs[i] = listed[Place(e.Allocation)]
	}
	stored, err := s.store.Backend().Record(s.Context(), rs)
	if err != nil || len(stored) != len(rs) {
		s.Fatalf("Record returns %[2]d records for %[1]d entries: %[3]v", len(rs), len(stored), err)
	}
	records := make([]ipam.Record, len(rs))
	for i, r := range rs {
		if !json.Valid(stored[i]) {
			s.Fatalf("the record of %s is %q", Place(r), stored[i])
		}
		records[i] = ipam.Record{Backend: r.Backend, Pool: r.Pool, Key: r.Key, Owner: r.Owner.Entry(), Stored: stored[i]}
		if r.IP.IsValid() {
			records[i].IP = r.IP.String()
		}
	}
	return records
}

// Permit is an ipam.Permit for every write.
func Permit() error { return nil }

// restore calls Restore with it.
func restore(ctx context.Context, b ipam.Backend, pool string, rs []ipam.Record) []error {
	return b.Restore(ctx, pool, rs, Permit)
}

// Compare returns what Restore answers without a permit, but nil if a place is free.
func Compare(ctx context.Context, b ipam.Backend, pool string, rs []ipam.Record) []error {
	refused := errors.New("no permit")
	errs := b.Restore(ctx, pool, rs, func() error { return refused })
	for i, err := range errs {
		switch {
		case err == nil:
			errs[i] = errors.New("it was put back without a permit")
		case errors.Is(err, refused):
			errs[i] = nil
		}
	}
	return errs
}

// restore puts the records back, pool by pool. First, it does so without a permit, which must give the
// same answers and change nothing (promise 5).
func (s *fixture) restore(ctx context.Context, records []ipam.Record) []error {
	s.Helper()
	before := s.snapshot()
	compared := s.eachPool(ctx, records, Compare)
	s.wantContent(before)
	errs := s.eachPool(ctx, records, restore)
	for i, err := range errs {
		if outcomeOf(compared[i]) != outcomeOf(err) {
			s.Errorf("record %d: without a permit, the answer is %v, and with one %v", i, compared[i], err)
		}
	}
	return errs
}

// outcomeOf names the answer of Restore that an error is.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "free"
	case errors.Is(err, ipam.ErrPresent):
		return "present"
	case errors.Is(err, ipam.ErrTaken):
		return "taken"
	default:
		return "failed"
	}
}

// eachPool calls a function with the records of each pool, and returns its answers.
func (s *fixture) eachPool(ctx context.Context, records []ipam.Record, do func(context.Context, ipam.Backend, string, []ipam.Record) []error) []error {
	s.Helper()
	errs := make([]error, len(records))
	pools := make(map[string][]int)
	for i, r := range records {
		pools[r.Pool] = append(pools[r.Pool], i)
	}
	for pool, indices := range pools {
		batch := make([]ipam.Record, len(indices))
		for n, i := range indices {
			batch[n] = records[i]
		}
		answers := do(ctx, s.store.Backend(), pool, batch)
		if len(answers) != len(batch) {
			s.Fatalf("%d records got %d answers", len(batch), len(answers))
		}
		for n, i := range indices {
			errs[i] = answers[n]
		}
	}
	return errs
}

// release releases the entries.
func (s *fixture) release(entries ...entry) {
	s.Helper()
	d := s.judge(entries...)
	s.wantErrors(d.releaseAll(d.confirm()), make([]error, len(entries))...)
}

// Promise 10. A restore puts the store's content back.
func restored(s *fixture) {
	s.live("a", "live-1", "live-2")
	leaked := append(s.leak("a", "gone-1", "gone-2", "gone-3"), s.leak("b", "gone-4")...)
	before := s.snapshot()
	records := s.record(leaked...)
	s.release(leaked...)
	s.wantContent(before, leaked...)
	s.wantErrors(s.restore(s.Context(), records[1:3]), nil, nil)
	s.wantContent(before, leaked[0], leaked[3])
	s.wantErrors(s.restore(s.Context(), records), nil, ipam.ErrPresent, ipam.ErrPresent, nil)
	s.wantContent(before)
}

// Promise 6, 10. A record that cannot be decoded changes nothing.
func badRecord(s *fixture) {
	s.live("a", "live")
	leaked := s.leak("a", "gone")
	records := s.record(leaked...)
	s.release(leaked...)
	before := s.snapshot()
	for _, junk := range []string{`null`, `"junk"`, `[]`, `7`} {
		records[0].Stored = json.RawMessage(junk)
		if errs := s.restore(s.Context(), records); errs[0] == nil {
			s.Errorf("the record %s was put back", junk)
		}
	}
	s.wantContent(before)
}

// Promise 10. Under a cancelled context, nothing is put back.
func cancelledRestore(s *fixture) {
	leaked := s.leak("a", "gone")
	before := s.snapshot()
	records := s.record(leaked...)
	s.release(leaked...)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if errs := s.restore(ctx, records); errs[0] == nil {
		s.Error("Restore under a cancelled context returns nil")
	}
	s.wantContent(before, leaked...)
}

// Promise 7, 10. A permit may end before any write of a restore. What it refuses is not back.
func endedPermit(s *fixture) {
	leaked := s.leak("a", "gone-1", "gone-2")
	records := s.record(leaked...)
	s.release(leaked...)
	ended := errors.New("no permit any more")
	for most := int32(0); ; most++ {
		var asked atomic.Int32
		permit := func() error {
			if asked.Add(1) > most {
				return ended
			}
			return nil
		}
		errs := s.eachPool(s.Context(), records, func(ctx context.Context, b ipam.Backend, pool string, rs []ipam.Record) []error {
			return b.Restore(ctx, pool, rs, permit)
		})
		listed := s.list()
		for i, err := range errs {
			back := err == nil || errors.Is(err, ipam.ErrPresent)
			if _, is := listed[Place(leaked[i].Allocation)]; is != back || !back && !errors.Is(err, ended) {
				s.Errorf("with a permit for %d writes, record %d gets the answer %v; it is listed: %v", most, i, err, is)
			}
		}
		if asked.Load() <= most {
			return
		}
	}
}

// Promise 10. Record does not return a new owner's entry as the old one's.
func changedBeforeRecord(s *fixture) {
	owner := s.owner("gone")
	e := s.allocate("a", owner)
	listed := s.list()[Place(e.Allocation)]
	s.giveAway(e)
	stored, err := s.store.Backend().Record(s.Context(), []ipam.Allocation{listed})
	if err != nil || len(stored) != 1 {
		s.Fatalf("%d records: %v", len(stored), err)
	}
	if len(stored[0]) != 0 && string(stored[0]) != listed.Token {
		s.Errorf("the record is %s, although the entry belongs to another pod", stored[0])
	}
}

// An overtaken is a backend before whose requests something happens.
type overtaken struct {
	ipam.Backend
	before func(request string)
}

// List implements ipam.Backend.
func (o overtaken) List(ctx context.Context) iter.Seq2[ipam.Pool, error] {
	o.before("list")
	return o.Backend.List(ctx)
}

// Restore implements ipam.Backend.
func (o overtaken) Restore(ctx context.Context, pool string, rs []ipam.Record, permit ipam.Permit) []error {
	if permit() != nil {
		o.before("compare")
	} else {
		o.before("restore")
	}
	return o.Backend.Restore(ctx, pool, rs, permit)
}

// Promise 1, 10. After the inventory of a restore, and before each of its later requests, another pod gets the
// address: from the same pool, or from another one of the network. It keeps the address.
func takenMeanwhile(s *fixture) {
	leaked := s.leak("a", "gone")
	s.live("a", "live")
	records := s.record(leaked...)
	s.release(leaked...)
	sharer, shares := s.store.(Sharer)
	for _, tt := range []struct {
		request string
		shared  bool // from another pool: compare-and-swap does not guard that
	}{{"list", false}, {"list", true}, {"compare", false}, {"restore", false}} {
		if tt.shared && !shares {
			continue
		}
		var taken entry
		var before map[string]string
		lists := 0
		take := func(asked string) {
			if asked == "list" {
				lists++
			}
			if before != nil || asked != tt.request || lists < 2 {
				return
			}
			if tt.shared {
				owner := s.owner("new-owner")
				s.create(owner)
				a, err := sharer.Share(leaked[0].Allocation, owner)
				if err != nil {
					s.Fatal(err)
				}
				taken = entry{a, "shared", owner}
			} else {
				taken = s.reallocate(leaked[0])
			}
			before = s.snapshot()
		}
		rep, marks := s.undo(overtaken{s.store.Backend(), take}, records)
		if at := s.markOf(marks, taken); !at.IsZero() {
			s.Errorf("the new owner counts as restored at %v", at)
		}
		if before == nil || rep.Entries[0].Outcome != report.Taken {
			s.Errorf("taken before %+v: %+v", tt, rep.Entries)
		}
		s.wantContent(before)
		s.free(taken)
	}
}

// Promise 1, 10. A restore marks what the store then lists, and no later owner of the place.
func markedOwner(s *fixture) {
	leaked := s.leak("a", "gone")
	s.live("a", "live")
	before := s.snapshot()
	records := s.record(leaked...)
	s.release(leaked...)
	rep, marks := s.undo(s.store.Backend(), records)
	if rep.Summary.Restored != 1 || s.markOf(marks, leaked[0]).IsZero() {
		s.Errorf("%+v, want it restored and marked", rep.Entries)
	}
	s.wantContent(before)
	if at := s.markOf(marks, s.giveAway(leaked[0])); !at.IsZero() {
		s.Errorf("the new owner counts as restored at %v", at)
	}
}

// undo restores records as the program does. It returns the report, and the ledger with the marks.
func (s *fixture) undo(b ipam.Backend, records []ipam.Record) (report.RestoreReport, *marks) {
	s.Helper()
	made := new(marks)
	rep, _ := reaper.Restore(s.Context(), reaper.RestoreOptions{
		ID: "restore-1", Journal: journal.Journal{Records: records}, Backends: []ipam.Backend{b}, Cluster: s.pods,
		Ledgers: made, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	return rep, made
}

// markOf returns when a restore put an entry back, as it is listed now.
func (s *fixture) markOf(m *marks, e entry) time.Time {
	s.Helper()
	listed, is := s.list()[Place(e.Allocation)]
	if !is {
		s.Errorf("%s is not listed", Place(e.Allocation))
	}
	return m.RestoredAt(&listed)
}

// marks is a ledger.Store in memory.
type marks struct{ ledger.Ledger }

// Load implements ledger.Store.
func (m *marks) Load(context.Context) (ledger.Ledger, error) { return m.Ledger, nil }

// Save implements ledger.Store.
func (m *marks) Save(_ context.Context, l ledger.Ledger) error {
	m.Ledger = l
	return nil
}

// Changed implements ledger.Store.
func (*marks) Changed(context.Context) (bool, error) { return false, nil }

// Capacity implements ledger.Store.
func (*marks) Capacity() int { return 1 << 20 }
