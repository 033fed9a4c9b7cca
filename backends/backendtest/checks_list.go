package backendtest

import (
	"context"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/reaper"
)

func emptyListing(s *stage) {
	b := s.store.Backend()
	if b.Name() == "" || b.Name() != s.store.Backend().Name() {
		s.Errorf("the backend's name is %q, want a constant one", b.Name())
	}
	if listed := s.list(); len(listed) != 0 {
		s.Errorf("an empty store lists %v", listed)
	}
}

// Promise 7. Nothing is left out, nothing is told twice, and looking changes
// nothing.
func completeListing(s *stage) {
	want := make(map[string]reaper.Allocation)
	for _, e := range append(s.live("a", "a-1", "a-2"), s.leak("b", "b-1", "b-2")...) {
		want[Place(e.Allocation)] = e.Allocation
		if e.Owner.Pod != e.asks.Pod {
			s.Errorf("the harness reserved %s for %s, want %s", e.Key, e.Owner.Pod, e.asks.Pod)
		}
	}
	if len(want) != 4 {
		s.Fatalf("four reservations are in %d places", len(want))
	}
	before := s.snapshot()
	listed := s.list()
	asListed := cmp.Options{
		cmpopts.EquateComparable(reaper.Owner{}),
		cmp.FilterPath(func(p cmp.Path) bool {
			switch p.Last().String() {
			case ".Backend", ".Token", ".Created", ".Group", ".SandboxOwned":
				return true
			}
			return false
		}, cmp.Ignore()),
		cmpopts.EquateComparable(reaper.Allocation{}.IP),
	}
	if diff := cmp.Diff(want, listed, asListed); diff != "" {
		s.Errorf("listed (-want +got):\n%s", diff)
	}
	for place, r := range listed {
		if r.Token == "" {
			s.Errorf("%s has no token, so that it can never be released", place)
		}
	}
	if diff := cmp.Diff(listed, s.list(), cmpopts.EquateComparable(reaper.Allocation{})); diff != "" {
		s.Errorf("the second listing is another (-first +second):\n%s", diff)
	}
	s.holds(before)
}

func earlyEnd(s *stage) {
	s.leak("a", "a-1", "a-2")
	s.leak("b", "b-1")
	for _, err := range s.store.Backend().List(s.Context()) {
		if err != nil {
			s.Errorf("list: %v", err)
		}
		break
	}
}

// Promise 2, 11. What could not be read to its end is no empty store.
func cancelledListing(s *stage) {
	s.leak("a", "a-1")
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	var last error
	for _, err := range s.store.Backend().List(ctx) {
		last = err
	}
	if last == nil {
		s.Error("a listing under a cancelled context looks complete")
	}
}

// Promise 2, 6.
func spoiled(s *stage) {
	spoiler, ok := s.store.(Spoiler)
	if !ok {
		s.Skip("the harness is no Spoiler")
	}
	leaked := s.leak("a", "a-1", "a-2")
	junk, err := spoiler.Spoil("a")
	if err != nil {
		s.Fatal(err)
	}
	r, ok := s.list()[Place(junk)]
	if !ok || r.Unreadable == "" {
		s.Errorf("%s is listed as %+v, want it to be Unreadable", Place(junk), r)
	}
	before := s.snapshot()
	d := s.suspect(leaked...)
	s.want(d.settle(d.confirm()), nil, nil)
	s.holds(before, leaked...)
}
