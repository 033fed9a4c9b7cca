package backendtest

import (
	"context"
	"encoding/json"

	"github.com/ip-reaper/ip-reaper/reaper"
)

// recorder is the backend over the store, which has to be able to undo.
func (s *stage) recorder() reaper.Recorder {
	s.Helper()
	recorder, ok := s.store.Backend().(reaper.Recorder)
	if !ok {
		s.Fatal("the backend is no reaper.Recorder: a run would release nothing of it")
	}
	return recorder
}

// record returns what the backend writes down of the entries.
func (s *stage) record(entries ...entry) []reaper.Record {
	s.Helper()
	listed := s.list()
	rs := make([]reaper.Allocation, len(entries))
	for i, e := range entries {
		rs[i] = listed[Place(e.Allocation)]
	}
	stored, err := s.recorder().Record(s.Context(), rs)
	if err != nil || len(stored) != len(rs) {
		s.Fatalf("%d entries have %d records: %v", len(rs), len(stored), err)
	}
	records := make([]reaper.Record, len(rs))
	for i, r := range rs {
		if !json.Valid(stored[i]) {
			s.Fatalf("the record of %s is %q", Place(r), stored[i])
		}
		records[i] = reaper.Record{Backend: r.Backend, Pool: r.Pool, Key: r.Key, Stored: stored[i]}
		if r.IP.IsValid() {
			records[i].IP = r.IP.String()
		}
	}
	return records
}

// restore puts the records back, pool by pool.
func (s *stage) restore(ctx context.Context, records []reaper.Record) []error {
	s.Helper()
	errs := make([]error, len(records))
	backend := s.recorder()
	pools := make(map[string][]int)
	for i, r := range records {
		pools[r.Pool] = append(pools[r.Pool], i)
	}
	for pool, indices := range pools {
		batch := make([]reaper.Record, len(indices))
		for n, i := range indices {
			batch[n] = records[i]
		}
		answers := backend.Restore(ctx, pool, batch)
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
func (s *stage) release(entries ...entry) {
	s.Helper()
	d := s.suspect(entries...)
	s.want(d.settle(d.confirm()), make([]error, len(entries))...)
}

// Promise 10.
func restored(s *stage) {
	s.live("a", "live-1", "live-2")
	leaked := append(s.leak("a", "gone-1", "gone-2", "gone-3"), s.leak("b", "gone-4")...)
	before := s.snapshot()
	records := s.record(leaked...)
	s.release(leaked...)
	s.holds(before, leaked...)
	s.want(s.restore(s.Context(), records[1:3]), nil, nil)
	s.holds(before, leaked[0], leaked[3])
	s.want(s.restore(s.Context(), records), nil, reaper.ErrPresent, reaper.ErrPresent, nil)
	s.holds(before)
}

// Promise 10.
func restoredAgain(s *stage) {
	leaked := s.leak("a", "gone-1", "gone-2")
	s.live("a", "live")
	before := s.snapshot()
	records := s.record(leaked...)
	s.want(s.restore(s.Context(), records), reaper.ErrPresent, reaper.ErrPresent)
	s.holds(before)
	s.release(leaked...)
	s.want(s.restore(s.Context(), records), nil, nil)
	s.want(s.restore(s.Context(), records), reaper.ErrPresent, reaper.ErrPresent)
	s.holds(before)
	s.release(leaked...)
	s.holds(before, leaked...)
}

// Promise 1, 10.
func restoredTooLate(s *stage) {
	leaked := s.leak("a", "gone")
	records := s.record(leaked...)
	s.release(leaked...)
	s.inherit(leaked[0])
	before := s.snapshot()
	s.want(s.restore(s.Context(), records), reaper.ErrTaken)
	s.holds(before)
}

// Promise 6, 10.
func strangeRecord(s *stage) {
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
	s.holds(before)
}

// Promise 10.
func cancelledRestore(s *stage) {
	leaked := s.leak("a", "gone")
	before := s.snapshot()
	records := s.record(leaked...)
	s.release(leaked...)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	if errs := s.restore(ctx, records); errs[0] == nil {
		s.Error("it is said to be back")
	}
	s.holds(before, leaked...)
}

// Promise 10.
func changedBeforeRecord(s *stage) {
	owner := s.owner("gone")
	e := s.reserve("a", owner)
	listed := s.list()[Place(e.Allocation)]
	s.giveAway(e)
	stored, err := s.recorder().Record(s.Context(), []reaper.Allocation{listed})
	if err != nil || len(stored) != 1 {
		s.Fatalf("%d records: %v", len(stored), err)
	}
	if len(stored[0]) != 0 && string(stored[0]) != listed.Token {
		s.Errorf("the record is %s, and the entry is another pod's", stored[0])
	}
}
