package backendtest

import (
	"context"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ip-reaper/ip-reaper/reaper/ipam"
)

func emptyListing(s *fixture) {
	b := s.store.Backend()
	if b.Name() == "" || b.Name() != s.store.Backend().Name() {
		s.Errorf("the backend's name is %q, want the same non-empty name each time", b.Name())
	}
	if listed := s.list(); len(listed) != 0 {
		s.Errorf("the listing of an empty store has %v", listed)
	}
}

// Promise 7. A listing has every entry exactly once, and changes nothing.
func completeListing(s *fixture) {
	want := make(map[string]ipam.Allocation)
	for _, e := range append(s.live("a", "a-1", "a-2"), s.leak("b", "b-1", "b-2")...) {
		want[Place(e.Allocation)] = e.Allocation
		if e.Owner.Pod != e.requester.Pod {
			s.Errorf("the harness allocated %s for %s, want %s", e.Key, e.Owner.Pod, e.requester.Pod)
		}
	}
	if len(want) != 4 {
		s.Fatalf("four allocations are in %d places", len(want))
	}
	before := s.snapshot()
	listed := s.list()
	asListed := cmp.Options{
		cmpopts.EquateComparable(ipam.Owner{}),
		cmp.FilterPath(func(p cmp.Path) bool {
			switch p.Last().String() {
			case ".Backend", ".Network", ".StoreNode", ".Token", ".Created", ".Group", ".Adoption":
				return true
			}
			return false
		}, cmp.Ignore()),
		cmpopts.EquateComparable(ipam.Allocation{}.IP),
	}
	if diff := cmp.Diff(want, listed, asListed); diff != "" {
		s.Errorf("listed (-want +got):\n%s", diff)
	}
	for place, r := range listed {
		if r.Token == "" {
			s.Errorf("%s has no token, so it can never be released", place)
		}
	}
	if diff := cmp.Diff(listed, s.list(), cmpopts.EquateComparable(ipam.Owner{}, ipam.Allocation{}.IP)); diff != "" {
		s.Errorf("the second listing differs (-first +second):\n%s", diff)
	}
	s.wantContent(before)
}

func earlyEnd(s *fixture) {
	s.leak("a", "a-1", "a-2")
	s.leak("b", "b-1")
	for _, err := range s.store.Backend().List(s.Context()) {
		if err != nil {
			s.Errorf("list: %v", err)
		}
		return
	}
	s.Error("nothing was listed")
}

// Promise 2, 11. A listing that was cut off is an error, never an empty store.
func cancelledListing(s *fixture) {
	s.leak("a", "a-1")
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	var last error
	for _, err := range s.store.Backend().List(ctx) {
		last = err
	}
	if last == nil {
		s.Error("List under a cancelled context yields no error")
	}
}

// Promise 2, 6. An unreadable entry is listed as such, and a release does not touch
// it.
func unreadableEntry(s *fixture) {
	spoiler, ok := s.store.(Spoiler)
	if !ok {
		s.Skip("the harness is not a Spoiler")
	}
	leaked := s.leak("a", "a-1", "a-2")
	junk, err := spoiler.Spoil("a")
	if err != nil {
		s.Fatal(err)
	}
	r, ok := s.list()[Place(junk)]
	if !ok || r.Unreadable == "" {
		s.Errorf("%s is listed as %+v, want it Unreadable", Place(junk), r)
	}
	before := s.snapshot()
	d := s.judge(leaked...)
	s.wantErrors(d.releaseAll(d.confirm()), nil, nil)
	s.wantContent(before, leaked...)
}
