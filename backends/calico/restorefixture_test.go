package calico

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ip-reaper/ip-reaper/backends/backendtest"
	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

// listed returns the backend's listing now, by Place.
func (s *fixture) listed() map[string]ipam.Allocation {
	s.t.Helper()
	all := make(map[string]ipam.Allocation)
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
func (s *fixture) records(rs ...ipam.Allocation) []ipam.Record {
	s.t.Helper()
	now := s.listed()
	for i := range rs {
		rs[i] = now[backendtest.Place(rs[i])]
	}
	stored, err := s.backend.Record(s.t.Context(), rs)
	if err != nil {
		s.t.Fatal(err)
	}
	records := make([]ipam.Record, len(rs))
	for i, r := range rs {
		records[i] = ipam.Record{Backend: Name, Pool: r.Pool, Key: r.Key, Stored: stored[i]}
		if r.IP.IsValid() {
			records[i].IP = r.IP.String()
		}
	}
	return records
}

// lose allocates an address for each of n pods, records them, and frees them again.
func (s *fixture) lose(n int) []ipam.Record {
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
func (s *fixture) restore(records ...ipam.Record) string {
	return restoreOutcomes(s.backend.Restore(s.t.Context(), firstBlock, records, backendtest.Permit))
}

// restoreOutcomes returns the answers of Restore in words.
func restoreOutcomes(errs []error) string { return strings.ReplaceAll(outcomes(errs), "gone", "back") }

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
