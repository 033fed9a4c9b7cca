package calico

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper"
)

// listed returns the backend's listing now, by Place.
func (s *fixture) listed() map[string]reaper.Allocation {
	s.t.Helper()
	all := make(map[string]reaper.Allocation)
	for u, err := range s.backend.List(s.t.Context()) {
		if err != nil {
			s.t.Fatal(err)
		}
		for _, r := range u.Allocations {
			r.Pool = u.Name
			all[backendtest.Place(r)] = r
		}
	}
	return all
}

// records returns the records of the allocations, as they are listed now.
func (s *fixture) records(rs ...reaper.Allocation) []reaper.Record {
	s.t.Helper()
	now := s.listed()
	for i := range rs {
		rs[i] = now[backendtest.Place(rs[i])]
	}
	stored, err := s.backend.Record(s.t.Context(), rs)
	if err != nil {
		s.t.Fatal(err)
	}
	records := make([]reaper.Record, len(rs))
	for i, r := range rs {
		records[i] = reaper.Record{Backend: Name, Pool: r.Pool, Key: r.Key, Stored: stored[i]}
		if r.IP.IsValid() {
			records[i].IP = r.IP.String()
		}
	}
	return records
}

// lose allocates an address for each of n pods, records them, and frees them again.
func (s *fixture) lose(n int) []reaper.Record {
	s.t.Helper()
	rs := s.leak(n)
	records := s.records(slices.Clone(rs)...)
	for _, r := range rs {
		if err := s.Free("a", r.Owner); err != nil {
			s.t.Fatal(err)
		}
	}
	return records
}

// restore puts back records of the first block.
func (s *fixture) restore(records ...reaper.Record) string {
	return restoreOutcomes(s.backend.Restore(s.t.Context(), firstBlock, records))
}

// restoreOutcomes returns the answers of Restore, in a word each.
func restoreOutcomes(errs []error) string {
	var all []string
	for _, err := range errs {
		word := "final"
		switch {
		case err == nil:
			word = "back"
		case errors.Is(err, reaper.ErrPresent):
			word = "present"
		case errors.Is(err, reaper.ErrTaken):
			word = "taken"
		case errors.Is(err, reaper.ErrAgain):
			word = "again"
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}

// contents returns the stored values, without versions and sequence numbers of
// blocks.
func (s *fixture) contents() map[string]string {
	s.fakeStore.mu.Lock()
	defer s.fakeStore.mu.Unlock()
	all := make(map[string]string)
	for _, stored := range s.objects {
		text := string(stored.value())
		if stored.kind == blocks {
			b := mustRead(s.t, stored.object)
			text = strings.Replace(text, fmt.Sprint(`"sequenceNumber":`, b.sequence), "", 1)
		}
		all[kindNames[stored.kind]+" "+stored.id] = text
	}
	return all
}

// Promise 10.
func TestRestoreGivesBackWhatWasRecorded(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		s := newFixture(t, sh)
		rs := s.leak(4)
		before := s.contents()
		records := s.records(slices.Clone(rs[1:])...)
		ws := s.warrants(rs[1:]...)
		if got := outcomes(s.backend.Release(t.Context(), ws)); got != "gone gone gone" {
			t.Fatalf("Release = %s", got)
		}
		slices.Reverse(records)
		if got := s.restore(records...); got != "back back back" {
			t.Errorf("Restore = %s", got)
		}
		if diff := cmp.Diff(before, s.contents()); diff != "" {
			t.Errorf("stored (-before +after):\n%s", diff)
		}
		if got := s.restore(records...); got != "present present present" {
			t.Errorf("Restore once more = %s", got)
		}
		if diff := cmp.Diff(before, s.contents()); diff != "" {
			t.Errorf("stored after that (-before +after):\n%s", diff)
		}
	})
}

// One sandbox has addresses in two blocks, and each block is restored on its own.
func TestRestoreOfOneHandleInTwoBlocks(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		for _, first := range []int{0, 1} {
			s := newFixture(t, sh)
			owner := s.owner()
			var rs []reaper.Allocation
			for _, pool := range []string{"a", "b", "a"} {
				r, err := s.Reserve(pool, owner)
				if err != nil {
					t.Fatal(err)
				}
				rs = append(rs, r)
			}
			before := s.contents()
			records := s.records(slices.Clone(rs)...)
			for _, pool := range []string{"a", "b"} {
				if err := s.Free(pool, owner); err != nil {
					t.Fatal(err)
				}
			}
			pools := []string{rs[0].Pool, rs[1].Pool}
			ofPool := map[string][]reaper.Record{pools[0]: {records[0], records[2]}, pools[1]: {records[1]}}
			for _, pool := range []string{pools[first], pools[1-first]} {
				if got := strings.Trim(restoreOutcomes(s.backend.Restore(t.Context(), pool, ofPool[pool])), "back "); got != "" {
					t.Errorf("Restore of %s = %s", pool, got)
				}
			}
			if diff := cmp.Diff(before, s.contents()); diff != "" {
				t.Errorf("stored (-before +after):\n%s", diff)
			}
		}
	})
}

func TestRestoreKeepsNewOwners(t *testing.T) {
	inShapes(t, func(t *testing.T, sh shape) {
		s := newFixture(t, sh)
		records := s.lose(63) // of 64, so that the second new owner gets the first record's address
		var newOwners []reaper.Allocation
		for range 2 {
			newOwners = append(newOwners, s.leak(1)...)
		}
		newOwner := slices.IndexFunc(records, func(r reaper.Record) bool { return r.IP == newOwners[1].IP.String() })
		if newOwner < 0 {
			t.Fatalf("%s was not recorded", newOwners[1].IP)
		}
		before := s.contents()
		errs := s.backend.Restore(t.Context(), firstBlock, records[newOwner:newOwner+1])
		if !errors.Is(errs[0], reaper.ErrTaken) || !strings.Contains(errs[0].Error(), "pod "+newOwners[1].Owner.Pod.String()) {
			t.Errorf("Restore = %v, want an error that names pod %s", errs, newOwners[1].Owner.Pod)
		}
		if diff := cmp.Diff(before, s.contents()); diff != "" {
			t.Errorf("stored (-before +after):\n%s", diff)
		}
		for i, err := range s.backend.Restore(t.Context(), firstBlock, records) {
			if (err != nil) != (i == newOwner) {
				t.Errorf("%s: %v", records[i].IP, err)
			}
		}
		after := s.listed()
		for _, r := range newOwners {
			if now := after[backendtest.Place(r)]; now.Owner.Pod != r.Owner.Pod {
				t.Errorf("%s now belongs to %s", r.IP, now.Owner.Pod)
			}
		}
		if len(after) != 64 {
			t.Errorf("%d entries, want 64 and no handle without an address", len(after))
		}
	})
}
